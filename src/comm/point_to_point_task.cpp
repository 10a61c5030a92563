// SPDX-License-Identifier: Apache-2.0
// Copies the messages that the rank sends to itself, and lets the back end exchange the others.
#include "comm/point_to_point_task.h"

#include "base/text.h"
#include "call/lookahead.h"
#include "comm/copy_anywhere.h"

namespace hccl::comm {

// The groups that follow on the stream, up to other work or the first group that belongs to another
// communicator, contains copies, or needs a staging buffer although the running group has none.
class PointToPointTask::NextGroups final : public GroupLookahead {
 public:
  NextGroups(device::Lookahead& lookahead, const PointToPointTask& running)
      : lookahead_(lookahead), running_(running) {}

  bool host_is_waiting() const override { return lookahead_.host_is_waiting(); }
  bool may_begin() override { return lookahead_.may_begin(); }
  WaitBudget wait_budget() const override { return lookahead_.wait_budget(); }
  std::span<const PointToPoint> next() override {
    const auto* task = lookahead_.next<PointToPointTask>();
    if (task == nullptr || &task->communicator_ != &running_.communicator_ ||
        task->copies_ != nullptr || (task->staging_ != 0 && running_.staging_ == 0))
      return {};
    return task->calls_.all();
  }
  void skip(std::size_t groups) override { lookahead_.skip(groups); }

 private:
  device::Lookahead& lookahead_;
  const PointToPointTask& running_;
};

void PointToPointTask::copy() const {
  for (const SelfCopy& copy : *copies_)
    copy_anywhere(communicator_.device().arena(), staging_, copy.to, copy.from, copy.bytes);
}

std::string PointToPointTask::first_call() const {
  return calls_.all().empty() ? "a send to itself" : describe(calls_.all().front());
}

device::Outcome PointToPointTask::operator()(device::Lookahead& lookahead) noexcept {
  OperationLog& log = communicator_.operation_log();
  if (!log.traces()) [[likely]]
    return run(lookahead);
  const std::span<const PointToPoint> calls = calls_.all();
  const std::string name =
      calls.empty() ? "copies of messages that the rank sends to itself"
                    : text(describe(calls.front()),
                           calls.size() > 1 ? text(" and ", calls.size() - 1, " more") : "");
  const std::string path = calls.empty() ? "copy" : communicator_.path_of(calls.front()).name;
  return log.trace(name, path, {lookahead.stream_id(), lookahead.ticket()},
                   [&] { return run(lookahead); });
}

device::Outcome PointToPointTask::run(device::Lookahead& lookahead) noexcept {
  return communicator_.run_reporting_faults(
      lookahead, [this] { return first_call(); },
      [&] {
        if (copies_ != nullptr) {
          if (lookahead.wait_budget() != WaitBudget::unlimited) return false;
          copy();
        }
        const std::span<const PointToPoint> calls = calls_.all();
        if (calls.empty()) return true;
        NextGroups ahead(lookahead, *this);
        return stream_.exchange(calls, place_, staging_, ahead);
      });
}

}  // namespace hccl::comm
