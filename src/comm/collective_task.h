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
  CollectiveTask(Communicator& communicator, node::Lane* lane, const CollectiveCall& call,
                 const StagingBuffer* stage) noexcept
      : communicator_(communicator), lane_(lane), call_(call), stage_(stage) {}

  // Runs the call; a fault becomes the communicator's async error.
  [[nodiscard]] device::Outcome operator()(device::Lookahead& lookahead) noexcept;

  // Returns whether it can be brought ahead on the lane.
  [[nodiscard]] bool can_follow_on(const node::Lane* lane) const {
    return lane_ == lane && stage_ == nullptr;
  }
  [[nodiscard]] const CollectiveCall& call() const { return call_; }

 private:
  [[nodiscard]] device::Outcome run(device::Lookahead& lookahead) noexcept;
  void run_alone();

  Communicator& communicator_;  // lives until the task has run: see Communicator::leave()
  node::Lane* lane_;
  CollectiveCall call_;
  const StagingBuffer* stage_;
};

}  // namespace hccl::comm
