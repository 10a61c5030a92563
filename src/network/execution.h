// SPDX-License-Identifier: Apache-2.0
// Runs one rank's schedule in one channel of a call, without blocking.
#pragma once

#include "network/call_header.h"
#include "network/flow.h"
#include "transport/wait_set.h"

#include <list>
#include <memory_resource>
#include <vector>

namespace hccl::network {

// The connections of one channel. Ranks are numbered as in the schedule.
class Streams {
 public:
  Streams() = default;
  virtual ~Streams() = default;
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Returns the endpoint to `rank`. Opens it on first use. Throws what Transport::open() throws.
  [[nodiscard]] virtual transport::Endpoint& to(int rank) = 0;
  // Returns the number that the program uses for `rank`, for error texts.
  [[nodiscard]] virtual int number_of(int rank) const = 0;
};

class Execution {
 public:
  // All arguments except `operands` and `header` must outlive the execution, as must the buffers of
  // `operands`. `rank` is this rank, numbered as in the schedule. `memory` provides the memory for
  // the lists of connections and flows. Throws what Streams::to() throws.
  Execution(const schedule::Schedule& schedule, const schedule::Chunking& chunking,
            const Operands& operands, const CallHeader& header, int rank, Streams& streams,
            std::pmr::memory_resource& memory = *std::pmr::get_default_resource());
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Delays the start until `earlier`, another channel of the call, has completed its first step, so
  // that this channel exchanges data within nodes while `earlier` exchanges data between nodes.
  // Call before the first advance().
  void follow(const Execution& earlier) { earlier_ = &earlier; }

  // Moves data that can be moved now, and returns whether the execution has made progress. Does not
  // block. Throws PeerLost, and what Streams::to() and the functions of Memory throw. Throws
  // CallMismatch if a peer makes a different call; the data of that call stays in the endpoint.
  bool advance();
  // Returns whether this rank, or a rank whose header has arrived, asks all ranks to confirm the
  // call.
  [[nodiscard]] bool asks_to_confirm() const { return header_.confirm != 0; }
  [[nodiscard]] bool complete() const { return step_ == schedule_.steps.size(); }
  // Adds to `entries` the endpoints for which the execution waits, each with the awaited events.
  void add_interests(std::vector<transport::WaitSet::Entry>& entries) const;
  // Returns the peers for which the execution waits, as the program numbers them.
  [[nodiscard]] std::vector<int> awaited() const;

 private:
  [[nodiscard]] bool held() const { return earlier_ != nullptr && earlier_->step_ == 0; }
  [[nodiscard]] bool is_last_step() const { return step_ + 1 == schedule_.steps.size(); }
  [[nodiscard]] bool is_flushed() const;
  void begin_step();
  [[nodiscard]] bool step_over();
  [[nodiscard]] PeerConnection& connection_to(int peer);
  [[nodiscard]] bool take_header(PeerConnection& connection);
  void hold_receive_behind(Flow& flow, const Flow& earlier) const;
  // Returns whether both spans contain data and begin at the same address.
  [[nodiscard]] bool touch(const schedule::Span& a, const schedule::Span& b) const;
  [[nodiscard]] static bool wants_header(const Flow& flow) {
    return flow.connection != nullptr && !flow.connection->header_received;
  }

  const schedule::Schedule& schedule_;
  const Layout layout_;
  CallHeader header_;
  const int rank_;
  Streams& streams_;
  const Execution* earlier_ = nullptr;
  std::size_t step_ = 0;
  std::pmr::list<PeerConnection> connections_;  // a list, so that addresses stay valid
  std::pmr::vector<Flow> sends_, receives_;
};

}  // namespace hccl::network
