// SPDX-License-Identifier: Apache-2.0
#include "comm/collective_task.h"

namespace hccl::comm {
namespace {

// The calls that follow on the stream, up to the first that is not a collective of the same
// communicator.
class NextCollectives final : public CallLookahead {
 public:
  NextCollectives(device::Lookahead& lookahead, const BackendStream& stream)
      : lookahead_(lookahead), stream_(stream) {}

  const CollectiveCall* next() override {
    return lookahead_.may_begin() ? next_in(lookahead_) : nullptr;
  }
  bool has_next() const override {
    device::Lookahead look = lookahead_;
    return next_in(look) != nullptr;
  }
  bool host_is_waiting() const override { return lookahead_.host_is_waiting(); }
  WaitBudget wait_budget() const override { return lookahead_.wait_budget(); }

 private:
  [[nodiscard]] const CollectiveCall* next_in(device::Lookahead& lookahead) const {
    const auto* const task = lookahead.next<CollectiveTask>();
    return task != nullptr && task->can_follow_on(stream_) ? &task->call() : nullptr;
  }

  device::Lookahead& lookahead_;
  const BackendStream& stream_;
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
  return communicator_.run_reporting_faults(
      lookahead, [this] { return describe(call_); },
      [&] {
        NextCollectives ahead(lookahead, stream_);
        return stream_.run(call_, staging_, ahead);
      });
}

}  // namespace hccl::comm
