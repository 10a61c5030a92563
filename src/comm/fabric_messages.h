// SPDX-License-Identifier: Apache-2.0
// Sends and receives across endpoints. Each direction of a pair of ranks has one connection, on
// which the messages follow each other in the order of the calls; the message whose turn it is has
// the connection to itself. A send is complete once the receiver has found the message to be what
// it expects; where another send to the same rank is queued right behind it, that one's answer
// counts for both.
#pragma once

#include "device/arena.h"
#include "device/command_queue.h"
#include "node/engine.h"
#include "node/point_to_point.h"
#include "transport/wait_set.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace hccl::comm {

class Fabric;

// The stream on whose turn messages move.
struct FabricStream {
  std::uint64_t id = 0;
  std::uint32_t ordinal = 0;  // of the lane that it has, or would get now
  const device::Upcoming* upcoming = nullptr;
};

class FabricMessages {
 public:
  FabricMessages(Fabric& fabric, int ranks)
      : fabric_(fabric),
        sends_(static_cast<std::size_t>(ranks)),
        receives_(static_cast<std::size_t>(ranks)) {}
  FabricMessages(const FabricMessages&) = delete;
  FabricMessages& operator=(const FabricMessages&) = delete;

  // Gives a message that is queued on the stream with this id its number. By one thread at a time,
  // in the order of the program's calls.
  void number(node::PointToPoint& call, std::uint64_t stream);
  // Returns whether messages that are not complete are queued on other streams than this one. Any
  // thread.
  [[nodiscard]] bool are_queued_elsewhere(std::uint64_t stream) const;
  // Runs sends and receives that have their numbers, all at once, to their end, on the turn of the
  // stream; `behind` are those that are queued next. Blocks. Throws Error: the communicator's
  // fault, a lost peer, a message that does not match, the deadline.
  void exchange(const FabricStream& stream, std::span<const node::PointToPoint> calls,
                std::span<const node::PointToPoint> behind, device::Arena& arena);
  // Waits until another rank has sent the beginning of a message that no receive has been queued
  // for, and returns it; nothing if it `only_looks` or the deadline passes first. Looks at the
  // ranks in a circle, from `first` on. Any thread, one after the other. Blocks. Throws the
  // communicator's fault.
  [[nodiscard]] std::optional<node::Offer> probe(int first, bool only_looks, Deadline deadline);
  // The stream is used no more.
  void forget(std::uint64_t stream);
  // Before it ends: see Fabric::part_from().
  void part(Deadline deadline);
  // Ends every wait. Any thread.
  void wake();

  // One direction between this rank and a peer.
  struct Way {
    std::atomic<std::uint64_t> turn{0};  // of the message with this number
    std::uint64_t numbered = 0;
    std::deque<std::uint64_t> queued_on;  // streams of the messages that are not complete, in order
    // Whose turn it is opens and uses it.
    std::unique_ptr<transport::Endpoint> endpoint;
    transport::Counters counted{};
    // A probe has the endpoint, and gives it back soon once the next receive has been queued.
    std::atomic<bool> probed{false};
  };
  [[nodiscard]] Way& way(const node::PointToPoint& call) {
    const auto peer = static_cast<std::size_t>(call.peer);
    return call.direction == node::Direction::send ? sends_[peer] : receives_[peer];
  }
  // Opens a call whose turn it is. Throws Error.
  void open(Way& way, const node::PointToPoint& call);
  // A call whose turn it was is done.
  void finish(Way& way, const node::PointToPoint& call);

 private:
  class Probe;
  [[nodiscard]] transport::WaitSet& wait_set_of(std::uint64_t stream);
  // Ends the sleep of the probe.
  void ring_probe();
  // Before the receives among `calls` use their endpoints. Blocks until probes have let go.
  void take_from_probes(std::span<const node::PointToPoint> calls);

  Fabric& fabric_;
  std::deque<Way> sends_, receives_;       // by peer
  std::atomic<int> waiting_for_turns_{0};  // streams that sleep until another passes a turn
  mutable std::mutex queued_mutex_;        // for Way::queued_on
  std::atomic<bool> probe_sleeps_{false};  // and wants to be rung when a receive ends
  std::timed_mutex probe_mutex_;           // of the one probe that looks
  std::mutex waits_mutex_;
  std::map<std::uint64_t, transport::WaitSet> waits_;  // by stream
};

}  // namespace hccl::comm
