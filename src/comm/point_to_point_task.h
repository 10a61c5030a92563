// SPDX-License-Identifier: Apache-2.0
// The sends and receives of one group, or a single one, on their stream's turn.
#pragma once

#include "comm/communicator.h"
#include "device/command_queue.h"

#include <memory>
#include <vector>

namespace hccl::comm {

// A message of a rank to itself.
struct SelfCopy {
  std::uint64_t from = 0, to = 0;  // device addresses
  std::uint64_t bytes = 0;
};

// Takes the sends and receives of `rank` with itself out of `calls`, and pairs them in order.
// Throws Error(hcclInternalError), which is what HCCL returns, if one is left over or differs.
[[nodiscard]] std::vector<SelfCopy> pair_self_messages(std::vector<node::PointToPoint>& calls,
                                                       int rank);

class PointToPointTask {
 public:
  PointToPointTask(std::shared_ptr<Communicator> communicator, const node::StreamPlace& place,
                   std::vector<node::PointToPoint> calls, std::vector<SelfCopy> copies)
      : communicator_(std::move(communicator)),
        place_(place),
        calls_(std::move(calls)),
        copies_(std::move(copies)) {}

  // Runs the calls; a fault becomes the communicator's async error.
  [[nodiscard]] device::Outcome operator()(device::Upcoming& upcoming) noexcept;

 private:
  class NextOfCommunicator;

  std::shared_ptr<Communicator> communicator_;
  node::StreamPlace place_;
  std::vector<node::PointToPoint> calls_;
  std::vector<SelfCopy> copies_;
};

}  // namespace hccl::comm
