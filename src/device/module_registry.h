// SPDX-License-Identifier: Apache-2.0
// Claims this node's modules. A claim is a bound abstract socket, so it leaves no stale file and
// ends when its holder exits. If another user has bound the name, the claim is a lock on a file in
// a directory of this user instead.
#pragma once

#include "base/file_descriptor.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hccl::device {

// Claims module `id`. Returns the claim, which holds the module until it is destroyed, or nothing
// if the module is already held. Throws Error(hcclSystemError).
[[nodiscard]] std::optional<FileDescriptor> claim_module(std::uint32_t id);

// Describes the holder of a claimed module, such as "pid 4711 (trainer)" or "this process". Needs
// no privileges. Does not block. Throws Error(hcclSystemError) if this process cannot create a
// socket.
[[nodiscard]] std::string holder_text(std::uint32_t id);

// Claims module `id` by a file lock. Returns nothing if no other user has bound the module's name,
// or if a process of this user holds the lock. Reads the list of all unix sockets, so use it as a
// last resort. Throws Error(hcclSystemError), which names the user who has bound the name, if no
// directory for the lock is usable.
[[nodiscard]] std::optional<FileDescriptor> claim_module_by_lock(std::uint32_t id);

}  // namespace hccl::device
