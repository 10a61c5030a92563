// SPDX-License-Identifier: Apache-2.0
// Runs sends and receives over endpoints. Each direction between two ranks has one link, on which
// messages travel in the order of the calls; only the message whose turn it is uses the link. A
// send may ask for an answer, by which the receiver confirms that it expects the message; the send
// then completes only after the answer. In a series of sends to one rank, only the last one asks,
// and the answer confirms the whole series; but in a large group, every send asks.
#pragma once

#include "call/backend.h"
#include "call/point_to_point.h"
#include "network/directed_link.h"
#include "network/message_probe.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>

namespace hccl::network {

class NetworkBackend;
class StreamConnections;

class NetworkMessages {
 public:
  NetworkMessages(NetworkBackend& network, int ranks)
      : network_(network),
        sends_(static_cast<std::size_t>(ranks)),
        receives_(static_cast<std::size_t>(ranks)),
        probe_(network, *this) {}
  NetworkMessages(const NetworkMessages&) = delete;
  NetworkMessages& operator=(const NetworkMessages&) = delete;

  // Gives the call the next number on its link. `stream` is the id of the call's stream. Call in
  // program order. Thread safety: one thread at a time.
  void number(PointToPoint& call, std::uint64_t stream);
  // Returns whether incomplete messages are queued on streams other than `stream`. Thread safety:
  // any thread.
  [[nodiscard]] bool are_queued_elsewhere(std::uint64_t stream) const;
  // Runs numbered sends and receives concurrently. Called by BackendStream::exchange(). Blocks
  // until all are complete. Throws Error, for example if the communicator has failed, a peer is
  // lost, a message does not match, or the wait times out.
  void exchange(StreamConnections& stream, std::span<const PointToPoint> calls,
                const MessagePlace& place, GroupLookahead& ahead);
  [[nodiscard]] MessageProbe& probe() { return probe_; }
  // Calls NetworkBackend::part_from() for all endpoints. Call before destruction.
  void part(Deadline deadline);

  [[nodiscard]] DirectedLink& link_of(const PointToPoint& call) {
    const auto peer = static_cast<std::size_t>(call.peer);
    return call.direction == Direction::send ? sends_[peer] : receives_[peer];
  }
  // Opens the link's endpoint for `call`, whose turn it is, or for a probe. Throws what
  // Transport::open() throws.
  void open(DirectedLink& link, const PointToPoint& call);
  // Completes `call`, and passes the turn to the next message of the link.
  void finish(DirectedLink& link, const PointToPoint& call);
  // Calls visit(peer, link) for each peer from which no receive is queued. No call is numbered
  // during the visits. Thread safety: any thread.
  template <class Visit>
  void for_each_idle_source(Visit visit) {
    const std::lock_guard lock(queued_mutex_);
    for (std::size_t peer = 0; peer < receives_.size(); ++peer) {
      DirectedLink& link = receives_[peer];
      if (link.turn.load(std::memory_order_seq_cst) == link.numbered)
        visit(static_cast<int>(peer), link);
    }
  }

 private:
  NetworkBackend& network_;
  std::deque<DirectedLink> sends_, receives_;  // by peer
  std::atomic<int> waiting_for_turns_{0};      // streams that sleep until they get a turn
  mutable std::mutex queued_mutex_;            // guards DirectedLink::queued_on and numbered
  MessageProbe probe_;
};

}  // namespace hccl::network
