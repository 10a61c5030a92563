// SPDX-License-Identifier: Apache-2.0
// Gets pidfds for pids and for peers of unix sockets.
#include "base/peer_process.h"

#include "base/retry.h"
#include "base/text.h"

#include <array>
#include <cerrno>
#include <cstdio>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; not in Debian 12's headers
#endif

namespace hccl {
namespace {

// Returns whether the process is in this process's namespace of this kind. The kernel answers only
// if this process may inspect the other one.
bool shares_namespace(pid_t pid, const char* kind) noexcept {
  std::array<char, 64> path{};
  struct stat own {};
  struct stat other {};
  std::snprintf(path.data(), path.size(), "/proc/self/ns/%s", kind);
  if (stat(path.data(), &own) != 0) return false;
  std::snprintf(path.data(), path.size(), "/proc/%d/ns/%s", pid, kind);
  return stat(path.data(), &other) == 0 && own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

// Returns the kernel's pidfd for the peer. On failure, returns an invalid descriptor with errno
// set.
FileDescriptor peer_pidfd(int unix_socket) noexcept {
  int fd = -1;
  socklen_t length = sizeof(fd);
  getsockopt(unix_socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &length);
  return FileDescriptor(fd);
}

}  // namespace

std::uint64_t own_pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

FileDescriptor open_process(pid_t pid) noexcept {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));  // always close-on-exec
}

FileDescriptor peer_process(int unix_socket) noexcept {
  FileDescriptor process = peer_pidfd(unix_socket);
  if (process.valid()) return process;
  const auto credentials = peer_credentials(unix_socket);
  if (!credentials || credentials->pid <= 0) return {};
  return open_process(credentials->pid);
}

std::optional<ucred> peer_credentials(int unix_socket) noexcept {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (getsockopt(unix_socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return std::nullopt;
  }
  return credentials;
}

std::optional<uid_t> peer_user(int unix_socket) noexcept {
  const auto credentials = peer_credentials(unix_socket);
  if (!credentials) return std::nullopt;
  return credentials->uid;
}

bool has_peer_pidfds() noexcept {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return true;
  const FileDescriptor one(ends[0]);
  const FileDescriptor other(ends[1]);
  return peer_pidfd(one.get()).valid() || errno != ENOPROTOOPT;
}

std::optional<bool> peer_may_be_inspected(int unix_socket) noexcept {
  const auto peer = peer_credentials(unix_socket);
  // A process in another pid namespace may have the pid 0. All users that a user namespace does not
  // map have the same number, so the number alone proves nothing.
  if (!peer || peer->pid <= 0 || peer->uid != geteuid()) return false;
  const FileDescriptor process = peer_pidfd(unix_socket);
  if (!process.valid() && is_resource_shortage(errno)) return std::nullopt;
  if (!process.valid() || !shares_namespace(peer->pid, "pid") ||
      !shares_namespace(peer->pid, "user"))
    return false;
  // If the peer's process has exited, the namespaces may be those of another process that has got
  // the same pid.
  return !has_exited(process);
}

std::string peer_text(int unix_socket) {
  const auto other = peer_credentials(unix_socket);
  return other ? text("pid ", other->pid, " of user ", other->uid) : "a process that has exited";
}

bool has_exited(const FileDescriptor& process) noexcept {
  if (!process.valid()) return false;
  pollfd entry{process.get(), POLLIN, 0};
  return retried([&] { return poll(&entry, 1, 0); }) == 1 && (entry.revents & POLLIN) != 0;
}

}  // namespace hccl
