// SPDX-License-Identifier: Apache-2.0
// A rank's mailboxes: one for each peer and direction. Assigns numbers to the rank's sends and
// receives, and finds messages for which the rank has queued no receive.
#pragma once

#include "call/backend.h"
#include "call/point_to_point.h"
#include "node/mailbox.h"
#include "node/node_segment.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hccl::node {

class Mailboxes {
 public:
  // `node` must outlive the mailboxes.
  explicit Mailboxes(NodeSegment& node);

  [[nodiscard]] Mailbox& of(const PointToPoint& call) const {
    return call.direction == Direction::send ? boxes_[node_.rank() * node_.size() + call.peer]
                                             : boxes_[call.peer * node_.size() + node_.rank()];
  }

  // Sets call.number to the count of this rank's earlier calls in the same direction with the same
  // peer, and publishes the call to the peer. `lane`: the ordinal of the call's lane plus one, or 0
  // if the call has no lane yet. Call in program order. Thread safety: one thread at a time.
  void number(PointToPoint& call, std::uint32_t lane);

  // Returns an offered message that number() has not assigned to a receive, if there is one. Checks
  // the ranks in order, starting at `first` and wrapping around. Does not block. Thread safety: one
  // thread at a time, and not concurrently with number(), which could assign the message.
  [[nodiscard]] std::optional<Offer> find_offer(int first) const;
  // Blocks until `ready()` returns true, a peer rings RankRecord::mail, the communicator has
  // failed, or `limit` has passed. A peer rings, for example, when it has offered this rank a
  // message.
  template <class Ready>
  void await_mail(std::chrono::nanoseconds limit, Ready ready) {
    node_.own_record().mail.sleep(limit, [&] { return node_.fault().raised() || ready(); });
  }

 private:
  NodeSegment& node_;
  Mailbox* const boxes_;                                 // by source and destination
  std::vector<std::uint64_t> next_send_, next_receive_;  // by peer
};

// Convert a send or receive to a word for RankRecord::in_exchange, and back. The word holds only
// the direction, the type, the peer, and the count, which is capped at 2^32 - 1.
[[nodiscard]] std::uint64_t pack_call(const PointToPoint& call);
[[nodiscard]] PointToPoint unpack_call(std::uint64_t packed);

}  // namespace hccl::node
