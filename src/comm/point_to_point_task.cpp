// SPDX-License-Identifier: Apache-2.0
// Messages to oneself are copies; the engine runs the others.
#include "comm/point_to_point_task.h"

#include "comm/host_staging.h"

namespace hccl::comm {

using node::PointToPoint;

// The stream's next groups, as long as they are of the same communicator and hold no copies
// and no host memory.
class PointToPointTask::NextOfCommunicator final : public node::GroupsAhead {
 public:
  NextOfCommunicator(device::Upcoming& upcoming, const Communicator& communicator)
      : upcoming_(upcoming), communicator_(communicator) {}

  bool attended() const override { return upcoming_.attended(); }
  bool may_begin() override { return upcoming_.may_begin(); }
  Patience patience() const override { return upcoming_.patience(); }
  std::span<const PointToPoint> next() override {
    const auto* task = upcoming_.next<PointToPointTask>();
    if (task == nullptr || &task->communicator_ != &communicator_ || task->copies_ != nullptr ||
        task->stage_ != nullptr)
      return {};
    return task->calls_.all();
  }
  void skip(std::size_t groups) override { upcoming_.skip(groups); }

 private:
  device::Upcoming& upcoming_;
  const Communicator& communicator_;
};

void PointToPointTask::copy() const {
  for (const SelfCopy& copy : *copies_)
    copy_anywhere(communicator_.device().arena(), stage_, copy.to, copy.from, copy.bytes);
}

device::Outcome PointToPointTask::operator()(device::Upcoming& upcoming) noexcept {
  return communicator_.run_reporting_faults([&] {
    const bool can_be_left = copies_ == nullptr && stage_ == nullptr && !communicator_.has_fabric();
    if (upcoming.patience() != Patience::endless && !can_be_left) return false;
    if (copies_ != nullptr) copy();
    const std::span<const PointToPoint> calls = calls_.all();
    if (calls.empty()) return true;
    if (communicator_.has_fabric()) {
      communicator_.exchange_on_fabric(stream_, calls);
      return true;
    }
    NextOfCommunicator ahead(upcoming, communicator_);
    return communicator_.engine().exchange(place_, calls, ahead,
                                           stage_ != nullptr ? stage_->address() : 0);
  });
}

}  // namespace hccl::comm
