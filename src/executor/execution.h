// SPDX-License-Identifier: Apache-2.0
// Runs the schedule of one rank in one channel over endpoints. Never blocks.
#pragma once

#include "executor/call_header.h"
#include "executor/flow.h"
#include "transport/wait_set.h"

#include <list>
#include <memory_resource>
#include <vector>

namespace hccl::executor {

// The streams of one channel of one lane.
class Streams {
 public:
  Streams() = default;
  virtual ~Streams() = default;
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // To a rank as the schedule numbers them; opened at the first use. Throws Error.
  [[nodiscard]] virtual transport::Endpoint& to(int rank) = 0;
  // The rank as the program numbers them, for texts.
  [[nodiscard]] virtual int number_of(int rank) const = 0;
};

class Execution {
 public:
  // All outlive it. `rank`: this one, as the schedule numbers them. `memory`: for what it notes.
  Execution(const schedule::Schedule& schedule, const schedule::Chunking& chunking,
            const Operands& operands, const CallHeader& header, int rank, Streams& streams,
            std::pmr::memory_resource& memory = *std::pmr::get_default_resource());
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Begins only once `earlier`, another channel of the call, has left its first step, so that the
  // two use different ways at a time. Before the first advance().
  void follow(const Execution& earlier) { earlier_ = &earlier; }

  // Moves what can be moved now. Returns whether anything moved. Never blocks. Throws PeerLost, and
  // CallMismatch where a peer makes another call; no data of that peer has been taken then.
  bool advance();
  // Returns whether this rank, or one whose data has come, asks for the call to be confirmed.
  [[nodiscard]] bool asks_to_confirm() const { return header_.confirm != 0; }
  [[nodiscard]] bool complete() const { return step_ == schedule_.steps.size(); }
  // Adds what it waits for.
  void add_interests(std::vector<transport::WaitSet::Entry>& entries) const;
  // The peers it waits for, as the program numbers them.
  [[nodiscard]] std::vector<int> awaited() const;

 private:
  [[nodiscard]] bool held() const { return earlier_ != nullptr && earlier_->step_ == 0; }
  void begin_step();
  [[nodiscard]] bool step_over();
  [[nodiscard]] Link& link_to(int peer);
  [[nodiscard]] bool move_flows();
  [[nodiscard]] bool take_header(Link& link);
  void hold_receive_behind(Flow& flow, const Flow& earlier) const;
  // Returns whether both spans have data and begin at the same address.
  [[nodiscard]] bool touch(const schedule::Span& a, const schedule::Span& b) const;
  [[nodiscard]] static bool wants_header(const Flow& flow) {
    return flow.link != nullptr && !flow.link->header_received;
  }

  const schedule::Schedule& schedule_;
  const Layout layout_;
  CallHeader header_;
  const int rank_;
  Streams& streams_;
  const Execution* earlier_ = nullptr;
  std::size_t step_ = 0;
  std::pmr::list<Link> links_;  // where they are they stay
  std::pmr::vector<Flow> sends_, receives_;
};

}  // namespace hccl::executor
