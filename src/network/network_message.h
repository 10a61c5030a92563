// SPDX-License-Identifier: Apache-2.0
// One send or receive over an endpoint. A message consists of a header and its data. If the sender
// asks for an answer, the receiver sends back one byte when it has checked the header.
#pragma once

#include "call/point_to_point.h"
#include "network/call_header.h"
#include "network/call_memory.h"
#include "network/network_messages.h"

#include <cstddef>
#include <cstdint>

namespace hccl::network {

class NetworkMessage {
 public:
  // All arguments must outlive the message. `wants_answer`: whether a send completes only after the
  // receiver's answer.
  NetworkMessage(const PointToPoint& call, bool wants_answer, NetworkMessages& messages,
                 device::Arena& arena);
  // If it is this message's turn, cuts the endpoint, so that the transport no longer accesses the
  // buffer.
  ~NetworkMessage();
  NetworkMessage(const NetworkMessage&) = delete;
  NetworkMessage& operator=(const NetworkMessage&) = delete;

  [[nodiscard]] bool complete() const { return complete_; }
  // Returns whether it is this message's turn: all earlier messages on its link are complete, and
  // this message is not.
  [[nodiscard]] bool has_turn() const {
    return link_.turn.load(std::memory_order_seq_cst) == call_.number;
  }
  [[nodiscard]] const PointToPoint& call() const { return call_; }
  // Returns the endpoint and the events that the message waits for. Call it only on the message's
  // turn.
  [[nodiscard]] transport::WaitSet::Entry interest() const;
  // Moves data that can be moved now, and returns whether the message has made progress. Does not
  // block. Throws PeerLost, and what Transport::open() and the functions of Memory throw. Throws
  // Error(hcclInvalidUsage) if the peer's message differs from the one that this rank expects.
  bool advance(int own_rank);

 private:
  // Returns the link's endpoint. Opens it on first use. Call it only on the message's turn.
  [[nodiscard]] transport::Endpoint& endpoint() const;
  [[nodiscard]] bool sends() const { return call_.direction == Direction::send; }
  [[nodiscard]] bool has_moved() const {
    return header_moved_ == sizeof(CallHeader) && moved_ == call_.bytes();
  }
  // Returns the number of bytes left to move, at most `most`.
  [[nodiscard]] std::size_t left(std::size_t most) const;
  bool send(transport::Endpoint& endpoint);
  bool receive(transport::Endpoint& endpoint, int own_rank);
  // Sends or receives the answer. Returns false if that is not possible yet.
  [[nodiscard]] bool exchange_answer(transport::Endpoint& endpoint) const;
  void check(const CallHeader& theirs, int own_rank) const;

  const PointToPoint& call_;
  NetworkMessages& messages_;
  DirectedLink& link_;
  CallMemory memory_;
  const CallHeader header_;
  bool answer_is_due_;  // the answer is still to be received or sent
  std::size_t header_moved_ = 0;
  std::uint64_t moved_ = 0;
  bool complete_ = false;
};

}  // namespace hccl::network
