// SPDX-License-Identifier: Apache-2.0
// Facts about this process: whether it was forked from a process that uses the library, and the
// identities of its host and node.
#pragma once

#include <cstdint>
#include <string>

namespace hccl {

// Makes is_forked_child() return true in children that are forked from now on. Called when the
// runtime is initialised. Throws Error(hcclOutOfMemory) if the fork handlers could not be
// registered when the library was loaded.
void install_fork_guard();

// Functions that run at every fork() of this process. They do not run when a forked child forks.
// `before` and `in_parent` run in the forking thread. `in_child` runs in the child, before the
// child closes the library's descriptors, and must be async-signal-safe. None may throw.
// Cancellation of the forking thread is deferred during the fork.
struct ForkHooks {
  void (*before)() noexcept;
  void (*in_parent)() noexcept;
  void (*in_child)() noexcept;
};
// Sets the hooks for forks that begin later. `hooks` must outlive the process's last fork.
void set_fork_hooks(const ForkHooks& hooks) noexcept;

// Returns true in a child that was forked after install_fork_guard(). The child lacks the library's
// threads, so every call must fail there.
[[nodiscard]] bool is_forked_child() noexcept;

[[nodiscard]] std::string host_name();

// Returns a text that identifies this process's network namespace. Two processes with the same text
// can reach each other's loopback addresses.
[[nodiscard]] std::string network_identity();
// Returns a hash of network_identity(), for comparison with other processes.
[[nodiscard]] std::uint64_t network_number();

// Returns the identity of this process's node: the uid, and either HCCL_NODE_ID or the boot id and
// the network namespace. Processes with the same identity share one set of module ids, and may map
// each other's memory.
[[nodiscard]] std::string node_identity();

// Returns the name of the program that the process runs, truncated to 15 characters, or an empty
// text if /proc does not show it.
[[nodiscard]] std::string process_name(int pid);

// Returns whether the process is stopped by a signal or a debugger. Returns false if
// /proc/<pid>/stat cannot be read.
[[nodiscard]] bool is_stopped(int pid);

}  // namespace hccl
