// SPDX-License-Identifier: Apache-2.0
// Telling the engine of the calls that follow, and communicators of one rank.
#include "comm/collective_task.h"

#include "device/copy.h"

namespace hccl::comm {
namespace {

// The stream's next calls, as long as they are on the same lane.
class NextOfLane final : public node::CallsAhead {
 public:
  NextOfLane(device::Upcoming& upcoming, const node::Lane* lane)
      : upcoming_(upcoming), lane_(lane) {}

  const node::CollectiveCall* next() override {
    const auto* task = upcoming_.next<CollectiveTask>();
    return task != nullptr && task->lane() == lane_ ? &task->call() : nullptr;
  }
  bool attended() const override { return upcoming_.attended(); }

 private:
  device::Upcoming& upcoming_;
  const node::Lane* lane_;
};

}  // namespace

device::Outcome CollectiveTask::operator()(device::Upcoming& upcoming) noexcept {
  return communicator_->run_reporting_faults([&] {
    if (communicator_->size() == 1) return run_alone();
    NextOfLane ahead(upcoming, lane_);
    communicator_->engine().execute(*lane_, call_, &ahead);
  });
}

// A communicator of one rank: a copy where send and receive differ.
void CollectiveTask::run_alone() {
  const std::uint64_t bytes = node::recv_bytes(call_, 1);
  if (bytes == 0 || call_.send == call_.recv) return;
  device::copy_on_device(communicator_->device().arena(), call_.recv, call_.send, bytes);
}

}  // namespace hccl::comm
