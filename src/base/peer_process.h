// SPDX-License-Identifier: Apache-2.0
// Other processes by pidfd: a descriptor that becomes readable when the last thread of the process
// has gone, and that never comes to mean another process.
#pragma once

#include "base/file_descriptor.h"

#include <chrono>
#include <cstdint>
#include <optional>

#include <sys/socket.h>
#include <sys/types.h>

namespace hccl {

// The inode of this process's pid namespace; 0 if /proc does not tell.
[[nodiscard]] std::uint64_t own_pid_namespace();

// Invalid if the process is gone or the kernel has no pidfd_open; errno tells.
[[nodiscard]] FileDescriptor open_process(pid_t pid) noexcept;

// The process at the other end of a connected unix socket. Works across pid namespaces where the
// kernel has SO_PEERPIDFD. Invalid if it is gone.
[[nodiscard]] FileDescriptor peer_process(int unix_socket) noexcept;

// Returns the credentials of the process that was at the other end when the socket was connected.
[[nodiscard]] std::optional<ucred> peer_credentials(int unix_socket) noexcept;
[[nodiscard]] std::optional<uid_t> peer_user(int unix_socket) noexcept;

// On a busy machine the news of a process's end can overtake what it said by TCP, never the end of
// its connection. This long is that waited for; a child of the process may keep it from coming.
constexpr std::chrono::milliseconds kLastWords{200};

[[nodiscard]] bool has_exited(const FileDescriptor& process) noexcept;

}  // namespace hccl
