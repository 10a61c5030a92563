// SPDX-License-Identifier: Apache-2.0
// Facts about this process: whether it was forked from one that used the library, its host and its
// box.
#pragma once

#include <cstdint>
#include <string>

namespace hccl {

// From now on, a forked child knows itself as one. Called when the runtime is initialised. Throws
// Error(hcclOutOfMemory) if the handlers, which are registered when the library is loaded, are not.
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

// True in a child forked after install_fork_guard(): the library's threads do not exist there, so
// every call must refuse.
[[nodiscard]] bool is_forked_child() noexcept;

[[nodiscard]] std::string host_name();

// Processes with the same text share a network: a loopback address of one reaches the others.
[[nodiscard]] std::string network_identity();
// The same as a number, to be compared with that of others.
[[nodiscard]] std::uint64_t network_number();

// The box: processes with the same text share devices' module ids and may map each other's memory:
// uid, then HCCL_NODE_ID or boot id + network namespace.
[[nodiscard]] std::string box_identity();

// The name of a process's program, at most 15 characters of it; empty if /proc does not tell.
[[nodiscard]] std::string process_name(int pid);

// 0 if /proc/<pid>/stat cannot be read, else its state letter (R, S, T ...).
[[nodiscard]] char process_state(int pid);

}  // namespace hccl
