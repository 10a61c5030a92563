// SPDX-License-Identifier: Apache-2.0
// Where a fault below the streams is caught.
#include "comm/collective_task.h"

#include "base/error.h"
#include "base/log.h"
#include "device/copy.h"

#include <exception>

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

 private:
  device::Upcoming& upcoming_;
  const node::Lane* lane_;
};

}  // namespace

device::Outcome CollectiveTask::operator()(device::Upcoming& upcoming) noexcept {
  Communicator& communicator = *communicator_;
  try {
    if (communicator.engine_) {
      NextOfLane ahead(upcoming, lane_);
      communicator.engine_->execute(*lane_, call_, &ahead);
    } else {
      run_alone();
    }
    return device::Outcome::success;
  } catch (const Error& error) {
    if (communicator.engine_) communicator.engine_->fail(error.code(), error.what());
    log(LogLevel::info, "comm", "rank ", communicator.rank(), ": ", error.what());
  } catch (const std::exception& error) {
    if (communicator.engine_) communicator.engine_->fail(hcclInternalError, error.what());
  }
  return device::Outcome::collective_failed;
}

// A communicator of one rank: a copy where send and receive differ.
void CollectiveTask::run_alone() {
  const std::uint64_t bytes = node::recv_bytes(call_, 1);
  if (bytes == 0 || call_.send == call_.recv) return;
  device::copy_on_device(communicator_->device().arena(), call_.recv, call_.send, bytes);
}

}  // namespace hccl::comm
