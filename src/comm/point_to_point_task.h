// SPDX-License-Identifier: Apache-2.0
// The sends and receives of one group, or a single one, on their stream's turn.
#pragma once

#include "comm/communicator.h"
#include "device/command_queue.h"

#include <memory>
#include <string>
#include <vector>

namespace hccl::comm {

class PointToPointTask {
 public:
  // `stream`: the id of the one that the task is on.
  PointToPointTask(Communicator& communicator, std::uint64_t stream, const node::StreamPlace& place,
                   MessageList&& calls, std::unique_ptr<const std::vector<SelfCopy>> copies,
                   const StagingBuffer* stage) noexcept
      : communicator_(communicator),
        stage_(stage),
        stream_(stream),
        place_(place),
        calls_(std::move(calls)),
        copies_(std::move(copies)) {}

  // Runs the calls; a fault becomes the communicator's async error.
  [[nodiscard]] device::Outcome operator()(device::Lookahead& lookahead) noexcept;

 private:
  class NextOfCommunicator;
  [[nodiscard]] device::Outcome run(device::Lookahead& lookahead) noexcept;
  void copy() const;
  [[nodiscard]] std::string first_call() const;  // for texts

  Communicator& communicator_;  // lives until the task has run: see Communicator::leave()
  const StagingBuffer* stage_;  // null if all is device memory
  std::uint64_t stream_;
  node::StreamPlace place_;
  MessageList calls_;
  std::unique_ptr<const std::vector<SelfCopy>> copies_;  // null if there are none
};

}  // namespace hccl::comm
