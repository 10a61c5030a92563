// SPDX-License-Identifier: Apache-2.0
// Telling the engine of the calls that follow, and communicators of one rank.
#include "comm/collective_task.h"

#include "comm/host_staging.h"

namespace hccl::comm {
namespace {

// The stream's next calls, as long as they are on the same lane.
class NextOfLane final : public node::CallsAhead {
 public:
  NextOfLane(device::Upcoming& upcoming, const node::Lane* lane)
      : upcoming_(upcoming), lane_(lane) {}

  const node::CollectiveCall* next() override {
    const auto* task = upcoming_.may_begin() ? upcoming_.next<CollectiveTask>() : nullptr;
    return task != nullptr && task->can_follow_on(lane_) ? &task->call() : nullptr;
  }
  bool attended() const override { return upcoming_.attended(); }
  Patience patience() const override { return upcoming_.patience(); }

 private:
  device::Upcoming& upcoming_;
  const node::Lane* lane_;
};

}  // namespace

device::Outcome CollectiveTask::operator()(device::Upcoming& upcoming) noexcept {
  OperationLog& log = communicator_.operation_log();
  if (!log.traces()) [[likely]]
    return run(upcoming);
  return log.trace(node::describe(call_), communicator_.path_of(call_).name,
                   {upcoming.stream_id(), upcoming.ticket()}, [&] { return run(upcoming); });
}

device::Outcome CollectiveTask::run(device::Upcoming& upcoming) noexcept {
  return communicator_.run_reporting_faults([&] {
    if (upcoming.behind_failure()) [[unlikely]]
      Communicator::throw_behind_failure(upcoming, node::describe(call_));
    if (communicator_.size() == 1) {
      run_alone();
      return true;
    }
    const bool can_be_left = !communicator_.uses_network() && stage_ == nullptr;
    if (upcoming.patience() != Patience::endless && !can_be_left) return false;
    if (communicator_.uses_network()) {
      const auto* const behind = upcoming.next<CollectiveTask>();
      communicator_.run_on_network(lane_->ordinal(), call_, upcoming,
                                   behind != nullptr && behind->can_follow_on(lane_));
      return true;
    }
    NextOfLane ahead(upcoming, lane_);
    if (stage_ == nullptr) return communicator_.engine().execute(*lane_, call_, &ahead);
    HostStaging staging(communicator_.device().arena(), *stage_, call_, communicator_.rank(),
                        communicator_.size());
    return communicator_.engine().execute(*lane_, staging.staged_call(), &ahead, &staging);
  });
}

// A communicator of one rank: a copy where send and receive differ.
void CollectiveTask::run_alone() {
  copy_anywhere(communicator_.device().arena(), stage_, call_.recv, call_.send,
                node::recv_bytes(call_, 1));
}

}  // namespace hccl::comm
