// SPDX-License-Identifier: Apache-2.0
// Sends and receives across endpoints. Each direction of a pair of ranks has one stream, on which
// the messages follow each other in the order of the calls; whose turn it is has the stream to
// itself.
#pragma once

#include "device/arena.h"
#include "node/point_to_point.h"
#include "transport/wait_set.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>

namespace hccl::comm {

class Fabric;

class FabricMessages {
 public:
  FabricMessages(Fabric& fabric, int ranks)
      : fabric_(fabric),
        sends_(static_cast<std::size_t>(ranks)),
        receives_(static_cast<std::size_t>(ranks)) {}
  FabricMessages(const FabricMessages&) = delete;
  FabricMessages& operator=(const FabricMessages&) = delete;

  // By one thread at a time, in the order of the program's calls.
  void number(node::PointToPoint& call) { call.number = way(call).numbered++; }
  // Runs sends and receives that have their numbers, all at once, to their end, on the turn of the
  // stream. Throws Error: the communicator's fault, a lost peer, a message that does not match, the
  // deadline.
  void exchange(std::uint64_t stream, std::span<const node::PointToPoint> calls,
                device::Arena& arena);
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
    // Whose turn it is opens and uses it.
    std::unique_ptr<transport::Endpoint> endpoint;
    transport::Counters counted{};
  };
  [[nodiscard]] Way& way(const node::PointToPoint& call) {
    const auto peer = static_cast<std::size_t>(call.peer);
    return call.direction == node::Direction::send ? sends_[peer] : receives_[peer];
  }
  // Of a call whose turn it is. Throws Error.
  void open(Way& way, const node::PointToPoint& call);
  // A call whose turn it was is done.
  void finish(Way& way, const node::PointToPoint& call);

 private:
  [[nodiscard]] transport::WaitSet& wait_set_of(std::uint64_t stream);

  Fabric& fabric_;
  std::deque<Way> sends_, receives_;       // by peer
  std::atomic<int> waiting_for_turns_{0};  // streams that sleep until another passes a turn
  std::mutex waits_mutex_;
  std::map<std::uint64_t, transport::WaitSet> waits_;  // by stream
};

}  // namespace hccl::comm
