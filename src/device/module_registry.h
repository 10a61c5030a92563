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

// Claims module `id`. Returns the claim, which holds the module until the claim is destroyed.
// Returns nothing if the module is already held, or another user has bound its name. Throws
// Error(hcclSystemError).
[[nodiscard]] std::optional<FileDescriptor> claim_module(std::uint32_t id);

// Returns a description of the holder of a claimed module, such as "pid 4711 (trainer)" or "this
// process". Needs no privileges. Does not block. Throws Error(hcclSystemError) if this process
// cannot create a socket.
[[nodiscard]] std::string holder_text(std::uint32_t id);

// Claims module `id` by a file lock. Returns nothing if a process of this user holds the lock, or
// if no other user is found to have bound the module's name (user_of_abstract_socket()). Reads the
// list of all unix sockets, so use it as a last resort. Throws Error(hcclSystemError), which names
// the user who has bound the name, if no directory for the lock is usable.
[[nodiscard]] std::optional<FileDescriptor> claim_module_by_lock(std::uint32_t id);

}  // namespace hccl::device
