// SPDX-License-Identifier: Apache-2.0
#include "live_groups.h"

#include <algorithm>

#include <unistd.h>

namespace hccl_torch {

LiveGroups& LiveGroups::instance() {
  static auto* const groups = new LiveGroups;
  return *groups;
}

LiveGroups::LiveGroups() : process_(::getpid()) {}

bool LiveGroups::is_in_forked_child() const { return ::getpid() != process_; }

void LiveGroups::add(ProcessGroupHccl& group) {
  if (is_in_forked_child()) return;
  const std::lock_guard lock(mutex_);
  groups_.push_back(&group);
}

void LiveGroups::remove(ProcessGroupHccl& group) {
  if (is_in_forked_child()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return visited_ != &group; });
  std::erase(groups_, &group);
}

void LiveGroups::for_each(const std::function<void(ProcessGroupHccl&)>& visit) {
  if (is_in_forked_child()) return;
  std::unique_lock lock(mutex_);
  std::vector<ProcessGroupHccl*> left = groups_;
  while (!left.empty()) {
    ProcessGroupHccl* const group = left.back();
    left.pop_back();
    if (std::ranges::find(groups_, group) == groups_.end()) continue;
    visited_ = group;
    lock.unlock();
    visit(*group);
    lock.lock();
    visited_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace hccl_torch
