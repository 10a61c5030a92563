// SPDX-License-Identifier: Apache-2.0
// One call of a communicator on its stream's turn.
#pragma once

#include "comm/communicator.h"
#include "device/command_queue.h"

#include <memory>

namespace hccl::comm {

class CollectiveTask {
 public:
  CollectiveTask(std::shared_ptr<Communicator> communicator, node::Lane* lane,
                 const node::CollectiveCall& call)
      : communicator_(std::move(communicator)), lane_(lane), call_(call) {}

  // Runs the call; a fault becomes the communicator's async error.
  [[nodiscard]] device::Outcome operator()(device::Upcoming& upcoming) noexcept;

  [[nodiscard]] const node::Lane* lane() const { return lane_; }
  [[nodiscard]] const node::CollectiveCall& call() const { return call_; }

 private:
  void run_alone();

  std::shared_ptr<Communicator> communicator_;
  node::Lane* lane_;
  node::CollectiveCall call_;
};

}  // namespace hccl::comm
