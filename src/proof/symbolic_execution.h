// SPDX-License-Identifier: Apache-2.0
// Runs the schedules of all ranks on symbolic memory, without buffering: a transfer takes place
// only while both ranks are at its step.
#pragma once

#include "proof/hazards.h"
#include "proof/symbols.h"
#include "proof/verifier.h"

#include <utility>

namespace hccl::proof {

class SymbolicExecution {
 public:
  // Both must outlive it and be well formed.
  SymbolicExecution(std::span<const Shape> shapes, std::span<const Schedule> schedules);

  [[nodiscard]] std::optional<Violation> run();

  // Return what run() has found, once it has returned.
  [[nodiscard]] const SymbolicMemory& memory(std::int32_t rank) const { return at(rank).memory; }
  [[nodiscard]] std::uint64_t hops() const { return hops_; }
  // Returns whose signals a rank has received in a barrier, its own included.
  [[nodiscard]] const std::vector<bool>& heard(std::int32_t rank) const { return at(rank).heard; }

 private:
  struct Send {
    std::int32_t peer = 0;
    std::uint32_t transfer = 0;
    std::uint32_t after_receives = 0;  // of the step: those that write what it forwards
    bool done = false;
  };
  struct Member {
    Member(const Shape& shape_in, const Schedule& schedule_in);

    const Shape* shape;
    const Schedule* schedule;
    SymbolicMemory memory;
    HazardCheck hazards;
    std::uint32_t step = 0;
    std::uint32_t received = 0;  // of the step
    std::uint32_t sends_left = 0;
    std::vector<Send> sends;            // of the step, by peer
    std::uint64_t start = 0;            // of the step, in hops
    std::uint64_t end = 0;              // of what the step has done so far
    std::vector<std::uint64_t> came{};  // when each receive of the step did
    std::vector<bool> heard;
    std::vector<bool> heard_before;       // the step
    std::vector<std::int32_t> waiting{};  // ranks, for this one to go on
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
  // Returns whether the next receive of the step has taken place.
  [[nodiscard]] bool receive(Member& member);
  [[nodiscard]] static Send* next_send(Member& from, std::int32_t to);
  // Returns when, in hops, a send that takes place now arrives.
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
