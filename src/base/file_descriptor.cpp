// SPDX-License-Identifier: Apache-2.0
// The set of descriptors that forked children close: a lock-free bitmap, because a lock that
// another thread holds during the fork would never be released in the child.
#include "base/file_descriptor.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <fcntl.h>
#include <unistd.h>

namespace hccl {
namespace {

// The bitmap `remembered` covers only descriptors below this number. The kernel assigns the lowest
// free number, so only a process with a million open files gets a higher one. Words that were never
// written occupy no memory.
constexpr int kMostDescriptors = 1 << 20;
constexpr int kBitsPerWord = 64;

std::array<std::atomic<std::uint64_t>, kMostDescriptors / kBitsPerWord> remembered{};
std::atomic<int> words_in_use{0};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::uint64_t bit_of(int fd) noexcept { return std::uint64_t{1} << (fd % kBitsPerWord); }

std::atomic<std::uint64_t>& word_of(int fd) noexcept {
  return remembered[static_cast<std::size_t>(fd / kBitsPerWord)];
}

bool forget(int fd) noexcept {
  return (word_of(fd).fetch_and(~bit_of(fd), std::memory_order_relaxed) & bit_of(fd)) != 0;
}

}  // namespace

int above_standard_streams(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(fd);
  errno = error;
  return moved;
}

FileDescriptor::FileDescriptor(int fd) noexcept : fd_(above_standard_streams(fd)) {
  close_in_forked_children(fd_);
}

FileDescriptor FileDescriptor::duplicate() const {
  const int copy = fcntl(fd_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy < 0) {
    throw Error(hcclSystemError,
                text("cannot duplicate descriptor ", fd_, ": ", system_error_text(errno), "; ",
                     advice_on(errno, "raise ulimit -n")));
  }
  return FileDescriptor(copy);
}

int FileDescriptor::release() noexcept {
  forget_in_forked_children(fd_);
  return std::exchange(fd_, -1);
}

void FileDescriptor::reset() noexcept {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0) return;
  // Remove the descriptor from the set before closing it, because another thread may get the same
  // number immediately after the close. In a forked child, the descriptor is already closed, and
  // its number may be in use again; forget() then returns false.
  if (fd >= kMostDescriptors || forget(fd)) close(fd);
}

// Relies on open() returning the lowest free number.
StandardStreamPlaceholders::StandardStreamPlaceholders() noexcept {
  for (int& taken : taken_) {
    const bool all_are_open = fcntl(STDIN_FILENO, F_GETFD) >= 0 &&
                              fcntl(STDOUT_FILENO, F_GETFD) >= 0 &&
                              fcntl(STDERR_FILENO, F_GETFD) >= 0;
    if (all_are_open) return;
    const int fd = open("/", O_PATH | O_CLOEXEC);  // permits neither reading nor writing
    if (fd > STDERR_FILENO) close(fd);
    if (fd < 0 || fd > STDERR_FILENO) return;
    taken = fd;
  }
}

StandardStreamPlaceholders::~StandardStreamPlaceholders() {
  for (const int taken : taken_) {
    if (taken >= 0) close(taken);
  }
}

void close_in_forked_children(int fd) noexcept {
  if (fd < 0 || fd >= kMostDescriptors) return;
  word_of(fd).fetch_or(bit_of(fd), std::memory_order_relaxed);
  const int needed = fd / kBitsPerWord + 1;
  int known = words_in_use.load(std::memory_order_relaxed);
  while (known < needed &&
         !words_in_use.compare_exchange_weak(known, needed, std::memory_order_relaxed)) {
  }
}

void forget_in_forked_children(int fd) noexcept {
  if (fd < 0 || fd >= kMostDescriptors) return;
  static_cast<void>(forget(fd));
}

void close_remembered_descriptors() noexcept {
  const int words = words_in_use.load(std::memory_order_relaxed);
  for (int word = 0; word < words; ++word) {
    std::uint64_t bits =
        remembered[static_cast<std::size_t>(word)].exchange(0, std::memory_order_relaxed);
    for (int bit = 0; bits != 0; ++bit, bits >>= 1) {
      if ((bits & 1) != 0) close(word * kBitsPerWord + bit);
    }
  }
}

}  // namespace hccl
