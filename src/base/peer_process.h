// SPDX-License-Identifier: Apache-2.0
// Refers to other processes by pidfd: a descriptor that becomes readable when the last thread of
// the process has ended, and that never refers to another process.
#pragma once

#include "base/file_descriptor.h"

#include <chrono>
#include <cstdint>
#include <optional>

#include <sys/socket.h>
#include <sys/types.h>

namespace hccl {

// Returns the inode of this process's pid namespace, or 0 if /proc does not show it.
[[nodiscard]] std::uint64_t own_pid_namespace();

// Returns a pidfd of the process. Invalid, with errno set, if the process is gone or the kernel has
// no pidfd_open.
[[nodiscard]] FileDescriptor open_process(pid_t pid) noexcept;

// Returns a pidfd of the process at the other end of a connected unix socket. The descriptor is
// invalid if that process is gone. Works across pid namespaces if the kernel has SO_PEERPIDFD.
[[nodiscard]] FileDescriptor peer_process(int unix_socket) noexcept;

// Returns the credentials of the process that was at the other end when the socket was connected.
[[nodiscard]] std::optional<ucred> peer_credentials(int unix_socket) noexcept;
[[nodiscard]] std::optional<uid_t> peer_user(int unix_socket) noexcept;

// The time to wait for a connection to end after the process at its other end has exited. On a busy
// machine the notice of the exit can arrive before data that the process sent by TCP; the end of
// the connection always follows that data. A connection may never end if a child of the process
// holds it open.
constexpr std::chrono::milliseconds kLastWords{200};

[[nodiscard]] bool has_exited(const FileDescriptor& process) noexcept;

}  // namespace hccl
