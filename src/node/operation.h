// SPDX-License-Identifier: Apache-2.0
// One operation while a rank is in it. Private to the engine's files.
#pragma once

#include "base/deadline.h"
#include "node/engine.h"

#include <optional>

namespace hccl::node {

struct Engine::Operation {
  Operation(Lane& lane_in, const CollectiveCall& call_in, int rank, int ranks,
            std::uint32_t number_in)
      : lane(lane_in),
        call(call_in),
        number(number_in),
        part_bytes(node::send_bytes(call_in, ranks)),
        send_bytes(sends(call_in, rank) ? part_bytes : 0),
        recv_bytes(receives(call_in, rank) ? node::recv_bytes(call_in, ranks) : 0) {}

  Lane& lane;
  const CollectiveCall& call;
  const std::uint32_t number;
  const std::uint64_t part_bytes;  // what a rank that sends brings
  const std::uint64_t send_bytes;  // what this rank sends
  const std::uint64_t recv_bytes;
  device::Placement send;  // in this rank's memory file
  device::Placement recv;
  device::Content content = device::Content::data;
  std::optional<TilePlan> plan;  // of the cooperative path
  bool mapped = false;           // all peers' buffers are in this process's page tables

  CallsAhead* ahead = nullptr;
  bool looked_ahead = false;  // at the calls that follow, which can be told only once

  // Patience starts with the first sleep: what was polled before is not worth a look at the clock.
  bool waiting = false;
  Deadline deadline = Deadline::never();
  Deadline report = Deadline::never();

  [[nodiscard]] bool eager() const { return part_bytes <= Slot::kPayloadBytes; }
};

// An operation's turn on its lane. However it ends, the next call has the next number: a peer may
// still bring its part of this one.
class Turn {
 public:
  Turn(Lane& lane, bool eager) : lane_(lane), eager_(eager) {}
  ~Turn() {
    if (eager_) {
      lane_.finish_eager();
    } else {
      lane_.finish_cooperative();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Lane& lane_;
  const bool eager_;
};

// Whether all ranks have brought their part of a lane's current operation; looks at each only until
// it has.
class Everybody {
 public:
  Everybody(const Lane& lane, int ranks) : lane_(lane), ranks_(ranks) {}

  [[nodiscard]] bool arrived() {
    while (next_ < ranks_ && lane_.arrived(next_)) ++next_;
    return next_ == ranks_;
  }

 private:
  const Lane& lane_;
  const int ranks_;
  int next_ = 0;
};

}  // namespace hccl::node
