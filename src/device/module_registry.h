// SPDX-License-Identifier: Apache-2.0
// The holders of this box's modules: a bound abstract socket per module, so there is no file to go
// stale and a dead holder's claim is gone with it. Where another user has bound the name first, a
// lock in a folder of this user's own takes its place.
#pragma once

#include "base/file_descriptor.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hccl::device {

// The claim on module `id`, held until destroyed; nothing if another process (or this one) holds
// it.
[[nodiscard]] std::optional<FileDescriptor> claim_module(std::uint32_t id);

// Names the holder of a claimed module for texts: "pid 4711 (trainer)", "this process". Needs no
// privilege.
// Does not block. Throws Error(hcclSystemError) if this process can make no socket.
[[nodiscard]] std::string holder_text(std::uint32_t id);

// As claim_module(), for a module that it did not get: nothing if a process of this user holds
// it. Looks at all unix sockets, so it is for the last resort. Throws Error(hcclSystemError) that
// names the user who holds the module's name if there is no folder for a lock.
[[nodiscard]] std::optional<FileDescriptor> claim_module_by_lock(std::uint32_t id);

}  // namespace hccl::device
