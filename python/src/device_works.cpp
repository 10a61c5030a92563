// SPDX-License-Identifier: Apache-2.0
#include "device_works.h"

#include "unfinished_works.h"
#include "work.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hccl_torch {

DeviceWorks& DeviceWorks::instance() {
  static DeviceWorks* const works = new DeviceWorks;
  return *works;
}

std::vector<c10::intrusive_ptr<Work>> DeviceWorks::users_of(const MemoryRange& range,
                                                            const UnfinishedWorks* own) {
  std::vector<c10::intrusive_ptr<Work>> users;
  if (!any()) return users;
  const std::lock_guard lock(mutex_);
  for (UnfinishedWorks* const group : groups_) {
    if (group != own) group->find_users_of(range, users);
  }
  return users;
}

void DeviceWorks::complete_users_of(const MemoryRange& range) {
  for (const c10::intrusive_ptr<Work>& work : users_of(range, nullptr)) work->complete();
}

void DeviceWorks::complete_all() {
  // This range covers all addresses of a process, because the upper half of the address space
  // belongs to the kernel.
  complete_users_of(
      {nullptr, reinterpret_cast<const std::byte*>(std::numeric_limits<std::intptr_t>::max())});
}

void DeviceWorks::add(UnfinishedWorks& group) {
  const std::lock_guard lock(mutex_);
  groups_.push_back(&group);
}

void DeviceWorks::remove(UnfinishedWorks& group) {
  const std::lock_guard lock(mutex_);
  groups_.erase(std::remove(groups_.begin(), groups_.end(), &group), groups_.end());
}

}  // namespace hccl_torch
