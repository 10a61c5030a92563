// SPDX-License-Identifier: Apache-2.0
// The existing process groups. quiesce_all() visits them before the interpreter shuts down.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include <sys/types.h>

namespace hccl_torch {

class ProcessGroupHccl;

// Never destroyed. In a forked child, the functions do nothing. Thread safety: any thread.
class LiveGroups {
 public:
  static LiveGroups& instance();

  void add(ProcessGroupHccl& group);
  // Removes a group. Call it before the group is destroyed. Blocks while for_each() visits the
  // group.
  void remove(ProcessGroupHccl& group);
  // Calls `visit` for each group, the newest first.
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
