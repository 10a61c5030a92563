// SPDX-License-Identifier: Apache-2.0
// Executes the schedules of all ranks on symbolic memory, without buffering: a transfer takes place
// only while sender and receiver are both at the step that contains it.
#pragma once

#include "proof/hazards.h"
#include "proof/symbols.h"
#include "proof/verifier.h"

#include <utility>

namespace hccl::proof {

class SymbolicExecution {
 public:
  // The shapes and the schedules must outlive this object and be well formed.
  SymbolicExecution(std::span<const Shape> shapes, std::span<const Schedule> schedules);

  [[nodiscard]] std::optional<Violation> run();

  // Return the results of run(), once run() has returned no violation.
  [[nodiscard]] const SymbolicMemory& memory(std::int32_t rank) const { return at(rank).memory; }
  [[nodiscard]] std::uint64_t hops() const { return hops_; }
  // Only for a barrier: element r of the result is true if the signal of rank r has reached `rank`.
  // Element `rank` is always true.
  [[nodiscard]] const std::vector<bool>& reached_by(std::int32_t rank) const {
    return at(rank).reached_by;
  }

 private:
  struct Send {
    std::int32_t peer = 0;
    std::uint32_t transfer = 0;
    std::uint32_t after_receives = 0;  // number of the step's receives that must precede a forward
    bool done = false;
  };
  struct Member {
    Member(const Shape& shape_in, const Schedule& schedule_in);

    const Shape* shape;
    const Schedule* schedule;
    SymbolicMemory memory;
    HazardCheck hazards;
    std::uint32_t step = 0;
    std::uint32_t received = 0;  // receives of the step that are done
    std::uint32_t sends_left = 0;
    std::vector<Send> sends;            // of the step, sorted by peer
    std::uint64_t start = 0;            // start of the step, in hops
    std::uint64_t end = 0;              // latest end of the step's transfers so far, in hops
    std::vector<std::uint64_t> came{};  // arrival time of each receive of the step, in hops
    std::vector<bool> reached_by;
    std::vector<bool> reached_by_before;  // `reached_by` at the start of the step
    std::vector<std::int32_t> waiting{};  // ranks that wait until this rank advances
    bool queued = false;

    [[nodiscard]] bool finished() const { return step == schedule->steps.size(); }
    [[nodiscard]] const Step& current() const { return schedule->steps[step]; }
    [[nodiscard]] bool done_with_step() const {
      return received == current().receives.count && sends_left == 0;
    }
  };

  [[nodiscard]] const Member& at(std::int32_t rank) const {
    return members_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Member& at(std::int32_t rank) { return members_[static_cast<std::size_t>(rank)]; }

  void queue(std::int32_t rank);
  void wake_those_waiting_for(Member& member);
  [[nodiscard]] std::optional<Violation> enter_step(Member& member);
  [[nodiscard]] std::optional<Violation> advance(Member& member);
  // Performs the next receive of the step if possible. Returns whether the receive has taken place
  // without a violation. Stores a violation in failure_.
  [[nodiscard]] bool receive(Member& member);
  [[nodiscard]] static Send* next_send(Member& from, std::int32_t to);
  // Returns the arrival time, in hops, of a send that takes place now.
  [[nodiscard]] static std::uint64_t arrival(const Member& from, const Send& send,
                                             const Member& to);
  void transfer(Member& from, const Span& sent, Member& to, const Transfer& receive);
  void fail(Property property, const Member& member, const std::string& reason);
  [[nodiscard]] Violation stuck() const;

  std::vector<Member> members_;
  std::vector<std::int32_t> queue_;
  std::optional<Violation> failure_;
  std::uint64_t hops_ = 0;
};

}  // namespace hccl::proof
