// SPDX-License-Identifier: Apache-2.0
// Facts about this process: whether it was forked from one that used the library, its host and its
// node.
#pragma once

#include <cstdint>
#include <string>

namespace hccl {

// Lets every child forked from now on know that it is one. Called when the runtime is initialised.
// Throws Error(hcclOutOfMemory) if the fork handlers could not be registered when the library was
// loaded.
void install_fork_guard();

// Hooks that run around a fork() of this process, but not of a forked child: `before` and
// `in_parent` in the thread that forks, `in_child` in the child before the library's descriptors
// are closed there. The thread cannot be cancelled meanwhile. None may throw; the last must be
// async-signal-safe.
struct ForkHooks {
  void (*before)() noexcept;
  void (*in_parent)() noexcept;
  void (*in_child)() noexcept;
};
// Installs the hooks for forks that begin later. `hooks` must outlive the process's last fork.
void set_fork_hooks(const ForkHooks& hooks) noexcept;

// Returns true in a child forked after install_fork_guard(). The library's threads do not exist
// there, so every call must refuse.
[[nodiscard]] bool is_forked_child() noexcept;

[[nodiscard]] std::string host_name();

// Returns a text that is equal for processes that share a network, in which a loopback address of
// one reaches the others.
[[nodiscard]] std::string network_identity();
// Returns the same as a number, to be compared with that of other processes.
[[nodiscard]] std::uint64_t network_number();

// Returns the identity of this process's node: processes with equal texts share devices' module ids
// and may map each other's memory. It consists of the uid, then HCCL_NODE_ID or boot id and network
// namespace.
[[nodiscard]] std::string node_identity();

// Returns the name of a process's program, at most 15 characters of it; empty if /proc does not
// tell.
[[nodiscard]] std::string process_name(int pid);

// Returns the state letter of a process (R, S, T ...), or 0 if /proc/<pid>/stat cannot be read.
[[nodiscard]] char process_state(int pid);

}  // namespace hccl
