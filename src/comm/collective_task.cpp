// SPDX-License-Identifier: Apache-2.0
// Telling the engine of the calls that follow, and communicators of one rank.
#include "comm/collective_task.h"

#include "comm/host_staging.h"
#include "node/lookahead.h"

namespace hccl::comm {
namespace {

// The stream's next calls, as long as they are on the same lane.
class NextOfLane final : public node::CallLookahead {
 public:
  NextOfLane(device::Lookahead& lookahead, const node::Lane* lane)
      : lookahead_(lookahead), lane_(lane) {}

  const CollectiveCall* next() override {
    const auto* task = lookahead_.may_begin() ? lookahead_.next<CollectiveTask>() : nullptr;
    return task != nullptr && task->can_follow_on(lane_) ? &task->call() : nullptr;
  }
  bool host_is_waiting() const override { return lookahead_.host_is_waiting(); }
  WaitBudget wait_budget() const override { return lookahead_.wait_budget(); }

 private:
  device::Lookahead& lookahead_;
  const node::Lane* lane_;
};

}  // namespace

device::Outcome CollectiveTask::operator()(device::Lookahead& lookahead) noexcept {
  OperationLog& log = communicator_.operation_log();
  if (!log.traces()) [[likely]]
    return run(lookahead);
  return log.trace(describe(call_), communicator_.path_of(call_).name,
                   {lookahead.stream_id(), lookahead.ticket()}, [&] { return run(lookahead); });
}

device::Outcome CollectiveTask::run(device::Lookahead& lookahead) noexcept {
  return communicator_.run_reporting_faults([&] {
    if (lookahead.behind_failure()) [[unlikely]]
      Communicator::throw_behind_failure(lookahead, describe(call_));
    if (communicator_.size() == 1) {
      run_alone();
      return true;
    }
    const bool may_return_early = !communicator_.uses_network() && stage_ == nullptr;
    if (lookahead.wait_budget() != WaitBudget::unlimited && !may_return_early) return false;
    if (communicator_.uses_network()) {
      const auto* const behind = lookahead.next<CollectiveTask>();
      communicator_.run_on_network(lane_->ordinal(), call_, lookahead,
                                   behind != nullptr && behind->can_follow_on(lane_));
      return true;
    }
    NextOfLane ahead(lookahead, lane_);
    if (stage_ == nullptr) return communicator_.engine().execute(*lane_, call_, &ahead);
    HostStaging staging(communicator_.device().arena(), *stage_, call_, communicator_.rank(),
                        communicator_.size());
    return communicator_.engine().execute(*lane_, staging.staged_call(), &ahead, &staging);
  });
}

// A communicator of one rank: a copy where send and receive differ.
void CollectiveTask::run_alone() {
  copy_anywhere(communicator_.device().arena(), stage_, call_.recv, call_.send,
                recv_bytes(call_, 1));
}

}  // namespace hccl::comm
