// SPDX-License-Identifier: Apache-2.0
// One call of a communicator on its stream's turn.
#pragma once

#include "comm/communicator.h"
#include "device/command_queue.h"

#include <memory>

namespace hccl::comm {

class CollectiveTask {
 public:
  // `stage`: null if the call is on device memory.
  CollectiveTask(std::shared_ptr<Communicator> communicator, node::Lane* lane,
                 const node::CollectiveCall& call, const Stage* stage) noexcept
      : communicator_(std::move(communicator)), lane_(lane), call_(call), stage_(stage) {}

  // Runs the call; a fault becomes the communicator's async error.
  [[nodiscard]] device::Outcome operator()(device::Upcoming& upcoming) noexcept;

  // Whether it can be brought ahead on the lane.
  [[nodiscard]] bool can_follow_on(const node::Lane* lane) const {
    return lane_ == lane && stage_ == nullptr;
  }
  [[nodiscard]] const node::CollectiveCall& call() const { return call_; }

 private:
  void run_alone();

  std::shared_ptr<Communicator> communicator_;
  node::Lane* lane_;
  node::CollectiveCall call_;
  const Stage* stage_;
};

}  // namespace hccl::comm
