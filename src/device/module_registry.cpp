// SPDX-License-Identifier: Apache-2.0
// Claims modules by binding abstract sockets. The holder listens but never accepts: listening is
// enough for the kernel to report the holder to a process that connects.
#include "device/module_registry.h"

#include "base/abstract_socket.h"
#include "base/errno_advice.h"
#include "base/error.h"
#include "base/log.h"
#include "base/peer_process.h"
#include "base/process.h"
#include "base/text.h"
#include "device/module_lock.h"

#include <cerrno>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

namespace hccl::device {
namespace {

std::string claim_name(std::uint32_t id) {
  // FNV-1a: all processes of a node must compute the same hash.
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : node_identity()) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  }
  return text("hccl-module-", std::hex, hash, "-", std::dec, id);
}

FileDescriptor unix_socket(std::uint32_t id, int flags) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (socket.valid()) return socket;
  throw Error(hcclSystemError, text("cannot claim module ", id, ": ", system_error_text(errno),
                                    "; ", advice_on(errno, "allow unix sockets")));
}

}  // namespace

std::optional<FileDescriptor> claim_module(std::uint32_t id) {
  const std::string name = claim_name(id);
  const SocketAddress address = abstract_address(name);
  FileDescriptor socket = unix_socket(id, 0);
  if (bind(socket.get(), address.get(), address.length) == 0) {
    // While another user held the name, a process of this user may have claimed the module by a
    // file lock, and may still hold that lock.
    if (is_locked(name)) return std::nullopt;
    // The claim is valid even if listen() fails: only holder_text() needs a listening socket.
    static_cast<void>(listen(socket.get(), SOMAXCONN));
    return socket;
  }
  if (errno == EADDRINUSE) return std::nullopt;
  throw Error(hcclSystemError, text("cannot claim module ", id, ": ", system_error_text(errno),
                                    "; ", advice_on(errno, "allow unix sockets")));
}

std::string holder_text(std::uint32_t id) {
  constexpr const char* kUnknown = "another process on this node";
  const SocketAddress address = abstract_address(claim_name(id));
  // Nonblocking, because the backlog of the holder's socket may be full.
  const FileDescriptor socket = unix_socket(id, SOCK_NONBLOCK);
  if (connect(socket.get(), address.get(), address.length) != 0) return kUnknown;
  const auto holder = peer_credentials(socket.get());
  if (!holder) return kUnknown;
  if (holder->pid == getpid()) return "this process";
  // The kernel reports 0 for a process outside this pid namespace.
  if (holder->pid <= 0) return "a process in another pid namespace, perhaps in another container";
  const std::string name = process_name(holder->pid);
  const std::string user = holder->uid != geteuid() ? text(" of user ", holder->uid) : "";
  return text("pid ", holder->pid, name.empty() ? "" : text(" (", name, ')'), user);
}

std::optional<FileDescriptor> claim_module_by_lock(std::uint32_t id) {
  const std::string name = claim_name(id);
  const std::optional<uid_t> user = user_of_abstract_socket(name);
  if (!user || *user == geteuid()) return std::nullopt;
  NameLock lock = lock_name(name);
  if (!lock.no_folder.empty()) {
    throw Error(
        hcclSystemError,
        text("user ", *user, " has bound the unix socket name for module ", id,
             " on this node, and user ", geteuid(), " has no usable directory for a lock file (",
             lock.no_folder,
             "); set HCCL_NODE_ID on all ranks of this machine to one name that other users ",
             "cannot guess"));
  }
  if (lock.held) {
    log(LogLevel::warning, "device", "user ", *user, " has bound the unix socket name for module ",
        id, " on this node; claimed the module with a file lock instead");
  }
  return std::move(lock.held);
}

}  // namespace hccl::device
