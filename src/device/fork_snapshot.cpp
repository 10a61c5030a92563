// SPDX-License-Identifier: Apache-2.0
// The handlers around fork(). Code that runs in the child must be async-signal-safe, because other
// threads of the parent may have held any lock at the fork, except those that the handlers take.
#include "device/fork_snapshot.h"

#include "base/file_descriptor.h"
#include "base/process.h"
#include "device/arena.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::device {
namespace {

struct Snapshots {
  std::mutex mutex;  // held across a fork
  std::vector<Arena*> arenas;
  // The socket pair of the fork in progress; -1 if there is none. The child sends a byte after it
  // has tried to make all copies.
  std::array<int, 2> ends{-1, -1};
  std::uint64_t bytes = 0;
};

Snapshots& snapshots() {
  static auto* all = new Snapshots;  // outlives static destructors
  return *all;
}

void warn(const char* text) noexcept {
  static_cast<void>(!write(STDERR_FILENO, text, std::strlen(text)));
}

void close_ends(Snapshots& all) noexcept {
  for (int& end : all.ends) {
    if (end >= 0) close(end);
    end = -1;
  }
}

void before_fork() noexcept {
  Snapshots& all = snapshots();
  all.mutex.lock();
  all.bytes = 0;
  for (Arena* const arena : all.arenas) all.bytes += arena->lock_for_fork();
  if (all.bytes == 0) return;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, all.ends.data()) == 0) {
    for (int& end : all.ends) end = above_standard_streams(end);
    if (all.ends[0] >= 0 && all.ends[1] >= 0) return;
  }
  close_ends(all);
  warn(
      "hccl WARN: cannot create a socket pair: a forked child gets no copy of the device memory; "
      "raise ulimit -n\n");
}

void unlock(Snapshots& all) noexcept {
  close_ends(all);
  for (Arena* const arena : all.arenas) arena->unlock_after_fork();
  all.mutex.unlock();
}

// Waits until the child has tried to make all copies, or has exited, but for at most 10 s plus 1 s
// per GiB to copy. A child that takes longer finds the socket closed, and drops its copies.
void in_parent() noexcept {
  Snapshots& all = snapshots();
  if (all.ends[0] >= 0) {
    close(std::exchange(all.ends[1], -1));
    using Clock = std::chrono::steady_clock;
    const auto most = std::chrono::seconds(10 + static_cast<std::int64_t>(all.bytes >> 30));
    const auto deadline = Clock::now() + most;
    pollfd done{all.ends[0], POLLIN, 0};
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      const int ready = poll(&done, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
      if (ready >= 0 || errno != EINTR) break;
    }
  }
  unlock(all);
}

void in_child() noexcept {
  Snapshots& all = snapshots();
  if (all.ends[1] >= 0) {
    close(std::exchange(all.ends[0], -1));
    bool complete = true;
    for (Arena* const arena : all.arenas) complete = arena->copy_kept() && complete;
    if (!complete)
      warn(
          "hccl WARN: out of memory: a forked child lacks part of its copy of the device memory; "
          "free memory on this host\n");
    // If the byte cannot be sent, the parent has stopped waiting, and may have changed the memory
    // during the copy.
    if (send(all.ends[1], "", 1, MSG_NOSIGNAL) != 1) {
      for (Arena* const arena : all.arenas) arena->drop_kept();
    }
  }
  unlock(all);
}

}  // namespace

void copy_at_fork(Arena& arena) {
  install_fork_guard();
  Snapshots& all = snapshots();
  const std::lock_guard lock(all.mutex);
  if (std::ranges::find(all.arenas, &arena) != all.arenas.end()) return;
  all.arenas.push_back(&arena);
  static constexpr ForkHooks kHooks{before_fork, in_parent, in_child};
  set_fork_hooks(kHooks);
}

void forget_at_fork(Arena& arena) noexcept {
  Snapshots& all = snapshots();
  const std::lock_guard lock(all.mutex);
  std::erase(all.arenas, &arena);
}

}  // namespace hccl::device
