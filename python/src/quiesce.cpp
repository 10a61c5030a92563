// SPDX-License-Identifier: Apache-2.0
// Ends process groups when the program releases them, or before the interpreter shuts down.
#include "live_groups.h"
#include "process_group.h"

#include <algorithm>
#include <chrono>

namespace hccl_torch {

namespace {

// The maximum time that quiesce_all() waits in all, before it aborts groups, for operations whose
// futures the program has requested.
constexpr std::chrono::seconds kExitTimeout{2};
// The maximum time of each of shutdown()'s two waits for receives, before and after it stops the
// matcher. The messages may never come.
constexpr std::chrono::seconds kReceivePatience{3};

}  // namespace

// Leaks the matcher in a forked child. The matcher's destructor would wait forever for threads that
// the child does not have.
ProcessGroupHccl::~ProcessGroupHccl() {
  LiveGroups::instance().remove(*this);
  if (communicator_->is_in_forked_child()) static_cast<void>(messages_.release());
}

// Sends and collectives end within the group's time-out. Receives that are posted in the matcher
// fail when the matcher stops. Receives that are queued in the library fail when the communicator
// is aborted.
void ProcessGroupHccl::shutdown() {
  if (communicator_->is_in_forked_child()) return;
  const bool have_ended = queue_.await_end(kReceivePatience);
  messages_->stop();
  if (!have_ended || !queue_.await_end(kReceivePatience) || !communicator_->is_idle())
    communicator_->abort();
  queue_.drain();
}

void ProcessGroupHccl::quiesce_all() {
  const auto deadline = std::chrono::steady_clock::now() + kExitTimeout;
  LiveGroups::instance().for_each([&](ProcessGroupHccl& group) { group.quiesce(deadline); });
}

// Also stops this group's pending receives, because they run on the matcher's threads.
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
