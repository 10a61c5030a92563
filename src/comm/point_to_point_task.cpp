// SPDX-License-Identifier: Apache-2.0
// Messages to oneself are copies; the engine runs the others.
#include "comm/point_to_point_task.h"

#include "device/copy.h"

#include <optional>

namespace hccl::comm {

using node::PointToPoint;

// The stream's next groups, as long as they are of the same communicator and hold no copies.
class PointToPointTask::NextOfCommunicator final : public node::GroupsAhead {
 public:
  NextOfCommunicator(const device::Stream& stream, device::Upcoming& upcoming,
                     const Communicator& communicator)
      : stream_(stream), upcoming_(upcoming), communicator_(communicator) {}

  bool attended() const override { return stream_.attended(); }
  std::span<const PointToPoint> next() override {
    if (!allowed_) allowed_ = stream_.may_begin_ahead();
    if (!*allowed_) return {};
    const auto* task = upcoming_.next<PointToPointTask>();
    if (task == nullptr || task->communicator_.get() != &communicator_ || !task->copies_.empty())
      return {};
    return task->calls_;
  }

 private:
  const device::Stream& stream_;
  std::optional<bool> allowed_;
  device::Upcoming& upcoming_;
  const Communicator& communicator_;
};

device::Outcome PointToPointTask::operator()(device::Upcoming& upcoming) noexcept {
  return communicator_->run_reporting_faults([&] {
    for (const SelfCopy& copy : copies_) {
      if (copy.bytes != 0)
        device::copy_on_device(communicator_->device().arena(), copy.to, copy.from, copy.bytes);
    }
    if (calls_.empty()) return;
    NextOfCommunicator ahead(*stream_, upcoming, *communicator_);
    communicator_->engine().exchange(place_, calls_, ahead);
  });
}

}  // namespace hccl::comm
