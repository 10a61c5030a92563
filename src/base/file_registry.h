// SPDX-License-Identifier: Apache-2.0
// A per-process registry that holds at most one object of a class for each memory file.
#pragma once

#include "base/file_descriptor.h"
#include "base/shared_memory.h"

#include <map>
#include <memory>
#include <mutex>

namespace hccl {

template <class Object>
class FileRegistry {
 public:
  // Returns this process's registry for the class. The registry is never destroyed, because static
  // destructors of programs may use it.
  [[nodiscard]] static FileRegistry& instance() {
    static auto* registry = new FileRegistry;
    return *registry;
  }

  // Returns the file's object. If there is none, creates it with make(identity). Thread safety: any
  // thread.
  template <class Make>
  [[nodiscard]] std::shared_ptr<Object> get(const FileDescriptor& file, Make make) {
    const FileIdentity identity = file_identity(file);
    {
      const std::lock_guard lock(mutex_);
      const auto found = objects_.find(identity);
      if (found != objects_.end()) {
        if (auto known = found->second.lock()) return known;
      }
    }
    // Create the object without holding the lock: if make() or the insertion fails, the object's
    // destructor runs and takes the lock.
    const std::shared_ptr<Object> made = make(identity);
    const std::lock_guard lock(mutex_);
    auto& entry = objects_[identity];
    if (auto known = entry.lock()) return known;  // another thread was faster
    entry = made;
    return made;
  }
  // Removes the entries of destroyed objects. Called by the destructor of each object.
  void forget_expired() {
    const std::lock_guard lock(mutex_);
    std::erase_if(objects_, [](const auto& entry) { return entry.second.expired(); });
  }

 private:
  std::mutex mutex_;
  std::map<FileIdentity, std::weak_ptr<Object>> objects_;
};

}  // namespace hccl
