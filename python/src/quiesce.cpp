// SPDX-License-Identifier: Apache-2.0
// How process groups end: when the program lets go of them, and before the interpreter ends.
#include "live_groups.h"
#include "process_group.h"

#include <algorithm>
#include <chrono>

namespace hccl_torch {

namespace {

// How long the end of the program waits for operations whose futures are awaited.
constexpr std::chrono::seconds kExitPatience{2};

}  // namespace

// A forked child has none of the threads that what receives messages would wait for.
ProcessGroupHccl::~ProcessGroupHccl() {
  LiveGroups::instance().remove(*this);
  if (communicator_->is_in_forked_child()) static_cast<void>(messages_.release());
}

void ProcessGroupHccl::quiesce_all() {
  const auto deadline = std::chrono::steady_clock::now() + kExitPatience;
  LiveGroups::instance().for_each([&](ProcessGroupHccl& group) { group.quiesce(deadline); });
}

// Receives that wait for a message would go on on threads of their own.
void ProcessGroupHccl::quiesce(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::milliseconds;
  if (communicator_->is_in_forked_child()) return;
  const auto left =
      std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
  if (!queue_.drain(std::max(left, milliseconds(0))) || messages_->has_posted())
    communicator_->abort();
  messages_->stop();
  if (queue_.drain()) return;
  queue_.abandon_callbacks();
  queue_.drain();
}

}  // namespace hccl_torch
