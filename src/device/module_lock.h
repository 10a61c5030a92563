// SPDX-License-Identifier: Apache-2.0
// Claims a module whose socket name another user has bound (module_registry.h), by locking a file
// in a directory that only this user can write to. The lock ends when its holder exits; the empty
// file remains.
#pragma once

#include "base/file_descriptor.h"

#include <optional>
#include <string>

namespace hccl::device {

struct NameLock {
  std::optional<FileDescriptor> held;  // the lock; nothing if it could not be taken
  std::string no_folder;  // the reason why no directory is usable, as a clause; else empty
};

// Tries to take the lock of this name. The lock lasts as long as `held` exists. Does not block.
[[nodiscard]] NameLock lock_name(const std::string& name);

// Returns true if a process of this user holds the lock of this name.
[[nodiscard]] bool is_locked(const std::string& name) noexcept;

}  // namespace hccl::device
