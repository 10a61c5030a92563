// SPDX-License-Identifier: Apache-2.0
// The process groups that exist. They are shut down when the program ends.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include <sys/types.h>

namespace hccl_torch {

class ProcessGroupHccl;

// Never destroyed. Thread safety: any thread.
class LiveGroups {
 public:
  static LiveGroups& instance();

  void add(ProcessGroupHccl& group);
  // Removes a group. Call it before the group is destroyed. Blocks while for_each() uses the group.
  void remove(ProcessGroupHccl& group);
  // Calls `visit` for each group, the newest first. A forked child has no groups.
  void for_each(const std::function<void(ProcessGroupHccl&)>& visit);

 private:
  LiveGroups();
  [[nodiscard]] bool is_in_forked_child() const;

  const pid_t process_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ProcessGroupHccl*> groups_;
  ProcessGroupHccl* visited_ = nullptr;
};

}  // namespace hccl_torch
