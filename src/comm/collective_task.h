// SPDX-License-Identifier: Apache-2.0
// The command that runs one collective in stream order.
#pragma once

#include "comm/communicator.h"
#include "device/command_queue.h"

namespace hccl::comm {

class CollectiveTask {
 public:
  // `staging` is the address of the stream's staging buffer, or 0 if the call needs none.
  CollectiveTask(Communicator& communicator, BackendStream& stream, const CollectiveCall& call,
                 std::uint64_t staging) noexcept
      : communicator_(communicator), stream_(stream), call_(call), staging_(staging) {}

  // Runs the call. If the call fails, the communicator fails too, unless it has only one rank.
  [[nodiscard]] device::Outcome operator()(device::Lookahead& lookahead) noexcept;

  // Returns whether the back end may begin this call while an earlier collective on `stream` runs.
  [[nodiscard]] bool can_follow_on(const BackendStream& stream) const {
    return &stream_ == &stream;
  }
  [[nodiscard]] const CollectiveCall& call() const { return call_; }

 private:
  [[nodiscard]] device::Outcome run(device::Lookahead& lookahead) noexcept;

  Communicator& communicator_;  // lives until the task has run: see Communicator::leave()
  BackendStream& stream_;
  CollectiveCall call_;
  std::uint64_t staging_;
};

}  // namespace hccl::comm
