// SPDX-License-Identifier: Apache-2.0
// Registers the objects of one class that this process has created for memory files, at most one
// per file.
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
  // Returns this process's registry for the class. It is never destroyed, because static
  // destructors of programs may use it.
  [[nodiscard]] static FileRegistry& instance() {
    static auto* registry = new FileRegistry;
    return *registry;
  }

  // Returns the file's object, or creates it with make(identity) if there is none. Thread safety:
  // any thread.
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
    // Create the object without the lock: if there is no memory for the entry, the object's
    // destructor runs, and takes the lock.
    const std::shared_ptr<Object> made = make(identity);
    const std::lock_guard lock(mutex_);
    auto& entry = objects_[identity];
    if (auto known = entry.lock()) return known;  // another thread created it first
    entry = made;
    return made;
  }
  // Removes the entries of destroyed objects. Called by each object's destructor.
  void forget_expired() {
    const std::lock_guard lock(mutex_);
    std::erase_if(objects_, [](const auto& entry) { return entry.second.expired(); });
  }

 private:
  std::mutex mutex_;
  std::map<FileIdentity, std::weak_ptr<Object>> objects_;
};

}  // namespace hccl
