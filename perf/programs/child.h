// SPDX-License-Identifier: Apache-2.0
// Child processes that end when this process ends, and memory shared with them.
#pragma once

#include <new>
#include <type_traits>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace hccl_perf {

// Forks a child that the kernel kills when the calling thread ends. Returns the result of fork().
[[nodiscard]] inline pid_t fork_child() {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have ended before the prctl() call. In a new PID namespace, getppid() returns
    // 0 although the parent is alive.
    if (getppid() != parent && getppid() != 0) _exit(1);
  }
  return child;
}

// An object in memory that this process shares with the children that it forks later.
template <class Object>
class Shared {
 public:
  // Throws std::bad_alloc.
  Shared() {
    void* const memory =
        mmap(nullptr, sizeof(Object), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    object_ = new (memory) Object();
  }
  ~Shared() { munmap(object_, sizeof(Object)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  [[nodiscard]] Object& operator*() const { return *object_; }
  [[nodiscard]] Object* operator->() const { return object_; }

 private:
  static_assert(std::is_trivially_destructible_v<Object>);
  Object* object_;
};

}  // namespace hccl_perf
