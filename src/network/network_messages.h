// SPDX-License-Identifier: Apache-2.0
// Sends and receives over endpoints. Each direction of a pair of ranks has one link, on which
// messages travel in the order of the calls; the message whose turn it is uses the link
// exclusively. A send is complete once the receiver has confirmed that it expects this message. If
// another send to the same rank follows directly, one answer confirms both.
#pragma once

#include "call/backend.h"
#include "call/point_to_point.h"
#include "transport/wait_set.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace hccl::network {

class NetworkBackend;
class StreamConnections;

class NetworkMessages {
 public:
  NetworkMessages(NetworkBackend& network, int ranks)
      : network_(network),
        sends_(static_cast<std::size_t>(ranks)),
        receives_(static_cast<std::size_t>(ranks)) {}
  NetworkMessages(const NetworkMessages&) = delete;
  NetworkMessages& operator=(const NetworkMessages&) = delete;

  // Assigns the call its sequence number on its link. `stream`: the id of the stream on which the
  // call is queued. Call in program order. Thread safety: one thread at a time.
  void number(PointToPoint& call, std::uint64_t stream);
  // Returns whether incomplete messages are queued on other streams than this one. Thread safety:
  // any thread.
  [[nodiscard]] bool are_queued_elsewhere(std::uint64_t stream) const;
  // Runs numbered sends and receives concurrently, on the turn of the stream. Blocks until all are
  // complete. Throws Error: the communicator's fault, a lost peer, a mismatched message, or a
  // timeout.
  void exchange(StreamConnections& stream, std::span<const PointToPoint> calls,
                const MessagePlace& place, GroupLookahead& ahead);
  // Returns a message that another rank has begun to send and for which no receive is queued.
  // Blocks until there is one. Returns nothing if the deadline passes first, or if `only_looks` is
  // set and there is none now. Checks the ranks in order, starting at `first` and wrapping around.
  // Throws the communicator's fault. Thread safety: any thread; concurrent calls run one after
  // another.
  [[nodiscard]] std::optional<Offer> probe(int first, bool only_looks, Deadline deadline);
  // Parts from all peers; call before destruction. See NetworkBackend::part_from().
  void part(Deadline deadline);
  // Ends the wait of a probe. Thread safety: any thread.
  void wake_probe();

  // One direction between this rank and a peer.
  struct DirectedLink {
    std::atomic<std::uint64_t> turn{0};  // the number of the message whose turn it is
    std::uint64_t numbered = 0;
    std::deque<std::uint64_t> queued_on;  // streams of the incomplete messages, in order
    // Opened and used by the message whose turn it is.
    std::unique_ptr<transport::Endpoint> endpoint;
    transport::Counters counted{};
    // Set while a probe has borrowed the endpoint. The probe returns it soon after a receive has
    // been queued.
    std::atomic<bool> probed{false};
  };
  [[nodiscard]] DirectedLink& link_of(const PointToPoint& call) {
    const auto peer = static_cast<std::size_t>(call.peer);
    return call.direction == Direction::send ? sends_[peer] : receives_[peer];
  }
  // Opens the link's endpoint, on the turn of `call`. Throws what Transport::open() throws.
  void open(DirectedLink& link, const PointToPoint& call);
  // Completes `call` and passes its turn to the next message.
  void finish(DirectedLink& link, const PointToPoint& call);

 private:
  class Probe;
  // Takes the endpoints of the receives among `calls` back from probes. Blocks until the probes
  // have returned them. Call before the receives use their endpoints.
  void take_from_probes(std::span<const PointToPoint> calls);

  NetworkBackend& network_;
  std::deque<DirectedLink> sends_, receives_;  // by peer
  std::atomic<int> waiting_for_turns_{0};      // streams that sleep until another passes a turn
  mutable std::mutex queued_mutex_;            // guards DirectedLink::queued_on
  std::atomic<bool> probe_sleeps_{false};      // a probe must be rung when a receive ends
  std::timed_mutex probe_mutex_;               // held by the probe that runs
  std::mutex probe_wait_mutex_;
  std::optional<transport::WaitSet> probe_wait_;  // from the first probe on
};

}  // namespace hccl::network
