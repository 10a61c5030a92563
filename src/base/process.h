// SPDX-License-Identifier: Apache-2.0
// Facts about this process: whether it was forked from a process that used the library, and the
// identities of its host and node.
#pragma once

#include <cstdint>
#include <string>

namespace hccl {

// Makes is_forked_child() return true in every child forked from now on. Called when the runtime is
// initialised. Throws Error(hcclOutOfMemory) if the fork handlers could not be registered when the
// library was loaded.
void install_fork_guard();

// Hooks that run around every fork() of this process, but not around those of a forked child.
// `before` and `in_parent` run in the forking thread; `in_child` runs in the child, before the
// library's descriptors are closed there. Cancellation of the forking thread is deferred meanwhile.
// No hook may throw; `in_child` must be async-signal-safe.
struct ForkHooks {
  void (*before)() noexcept;
  void (*in_parent)() noexcept;
  void (*in_child)() noexcept;
};
// Installs the hooks for all forks that begin later. `hooks` must outlive the process's last fork.
void set_fork_hooks(const ForkHooks& hooks) noexcept;

// Returns true in a child forked after install_fork_guard(). The library's threads do not exist in
// such a child, so every call must fail.
[[nodiscard]] bool is_forked_child() noexcept;

[[nodiscard]] std::string host_name();

// Returns a text that identifies this process's network namespace. Processes with equal texts can
// reach each other's loopback addresses.
[[nodiscard]] std::string network_identity();
// Returns a hash of network_identity(), for comparison with other processes.
[[nodiscard]] std::uint64_t network_number();

// Returns the identity of this process's node. Processes with equal identities share the module ids
// of devices and may map each other's memory. The text consists of the uid and either HCCL_NODE_ID
// or the boot id and the network namespace.
[[nodiscard]] std::string node_identity();

// Returns the name of a process's program, truncated to 15 characters, or an empty text if /proc
// does not show it.
[[nodiscard]] std::string process_name(int pid);

// Returns whether a process is stopped by a signal or a debugger. Returns false if /proc/<pid>/stat
// cannot be read.
[[nodiscard]] bool is_stopped(int pid);

}  // namespace hccl
