// SPDX-License-Identifier: Apache-2.0
// One send or receive across an endpoint: a header, which says what is sent, its bytes, and, if the
// sender asks for it, an answer of one byte by which the receiver confirms the header.
#pragma once

#include "comm/call_memory.h"
#include "comm/fabric_messages.h"
#include "executor/call_header.h"
#include "node/point_to_point.h"

#include <cstddef>
#include <cstdint>

namespace hccl::comm {

class FabricMessage {
 public:
  // All outlive it. `wants_answer`, of a send: it is complete once the receiver has answered.
  FabricMessage(const node::PointToPoint& call, bool wants_answer, FabricMessages& messages,
                device::Arena& arena);
  // Cuts the endpoint of a message that is not complete, as of a collective: see FabricLane.
  ~FabricMessage();
  FabricMessage(const FabricMessage&) = delete;
  FabricMessage& operator=(const FabricMessage&) = delete;

  [[nodiscard]] bool complete() const { return complete_; }
  // Returns whether the messages before it in its direction are complete.
  [[nodiscard]] bool has_turn() const {
    return way_.turn.load(std::memory_order_seq_cst) == call_.number;
  }
  [[nodiscard]] const node::PointToPoint& call() const { return call_; }
  // Returns what the message waits for, on its turn.
  [[nodiscard]] transport::WaitSet::Entry interest() const;
  // Moves what can be moved now. Returns whether anything moved. Never blocks. Throws PeerLost, and
  // Error(hcclInvalidUsage) if the peer sends another message than this rank expects.
  bool advance(int own_rank);

 private:
  // Whose turn it is opens it.
  [[nodiscard]] transport::Endpoint& endpoint() const;
  [[nodiscard]] bool sends() const { return call_.direction == node::Direction::send; }
  [[nodiscard]] bool has_moved() const {
    return header_moved_ == sizeof(executor::CallHeader) && moved_ == call_.bytes();
  }
  // Returns how many bytes are left to move, at most `most`.
  [[nodiscard]] std::size_t left(std::size_t most) const;
  bool send(transport::Endpoint& endpoint);
  bool receive(transport::Endpoint& endpoint, int own_rank);
  // Takes or gives the answer. Returns whether that is done.
  [[nodiscard]] bool settle_answer(transport::Endpoint& endpoint) const;
  void check(const executor::CallHeader& theirs, int own_rank) const;

  const node::PointToPoint& call_;
  FabricMessages& messages_;
  FabricMessages::Way& way_;
  CallMemory memory_;
  const executor::CallHeader header_;
  bool answer_is_due_;  // the sender waits for it, or the receiver has not sent it yet
  std::size_t header_moved_ = 0;
  std::uint64_t moved_ = 0;
  bool complete_ = false;
};

}  // namespace hccl::comm
