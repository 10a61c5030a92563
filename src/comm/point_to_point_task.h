// SPDX-License-Identifier: Apache-2.0
// The command that runs the sends and receives of one group on a stream.
#pragma once

#include "comm/communicator.h"
#include "device/command_queue.h"

#include <memory>
#include <string>
#include <vector>

namespace hccl::comm {

class PointToPointTask {
 public:
  // `staging` is the address of the stream's staging buffer, or 0 if the task needs none.
  PointToPointTask(Communicator& communicator, BackendStream& stream, const MessagePlace& place,
                   MessageList&& calls, std::unique_ptr<const std::vector<SelfCopy>> copies,
                   std::uint64_t staging) noexcept
      : communicator_(communicator),
        stream_(stream),
        staging_(staging),
        place_(place),
        calls_(std::move(calls)),
        copies_(std::move(copies)) {}

  // Runs the calls. If a call fails, the communicator fails too, unless it has only one rank.
  [[nodiscard]] device::Outcome operator()(device::Lookahead& lookahead) noexcept;

 private:
  class NextGroups;
  [[nodiscard]] device::Outcome run(device::Lookahead& lookahead) noexcept;
  void copy() const;
  [[nodiscard]] std::string first_call() const;  // for error texts

  Communicator& communicator_;  // lives until the task has run: see Communicator::leave()
  BackendStream& stream_;
  std::uint64_t staging_;
  MessagePlace place_;
  MessageList calls_;
  std::unique_ptr<const std::vector<SelfCopy>> copies_;  // null if there are none
};

}  // namespace hccl::comm
