// SPDX-License-Identifier: Apache-2.0
// Identifies other processes by pidfds. A pidfd becomes readable when the last thread of its
// process has ended. Unlike a pid, it is never reused for another process.
#pragma once

#include "base/file_descriptor.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <sys/socket.h>
#include <sys/types.h>

namespace hccl {

// Returns the inode of this process's pid namespace, or 0 if /proc does not show it.
[[nodiscard]] std::uint64_t own_pid_namespace();

// Returns a pidfd for the process. On failure, for example if the process has exited or the kernel
// lacks pidfd_open, returns an invalid descriptor with errno set.
[[nodiscard]] FileDescriptor open_process(pid_t pid) noexcept;

// Returns a pidfd for the process at the other end of a connected unix socket. Returns an invalid
// descriptor if that process has exited, if the kernel can create no pidfd, or if the kernel lacks
// SO_PEERPIDFD and the process has no pid in this pid namespace.
[[nodiscard]] FileDescriptor peer_process(int unix_socket) noexcept;

// Returns the credentials that the peer's process had when it called connect(), listen() or
// socketpair(), or nothing on failure.
[[nodiscard]] std::optional<ucred> peer_credentials(int unix_socket) noexcept;
[[nodiscard]] std::optional<uid_t> peer_user(int unix_socket) noexcept;
// Returns false if the kernel is known to provide no pidfds for the peers of unix sockets (before
// Linux 6.5).
[[nodiscard]] bool has_peer_pidfds() noexcept;
// Returns whether the peer's process runs as this user in the same pid and user namespaces, and the
// kernel lets this process inspect it (PTRACE_MODE_READ). The library does not protect such
// processes from each other. Returns false if the peer's process has exited, if /proc does not show
// it, or if has_peer_pidfds() returns false. Returns nothing if descriptors or
// memory have run out.
[[nodiscard]] std::optional<bool> peer_may_be_inspected(int unix_socket) noexcept;
// Returns a description of the peer's process, for logs.
[[nodiscard]] std::string peer_text(int unix_socket);

// How long to wait for a connection to close after the process at its other end has exited. On a
// busy machine, the pidfd can report the exit before the last data that the process sent over TCP
// has arrived. The end of the connection arrives only after this data. The wait is limited, because
// a child of the process may keep the connection open.
constexpr std::chrono::milliseconds kLastWords{200};

[[nodiscard]] bool has_exited(const FileDescriptor& process) noexcept;

}  // namespace hccl
