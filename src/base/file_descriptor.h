// SPDX-License-Identifier: Apache-2.0
// A file descriptor with one owner. Forked children close every descriptor that the library holds.
// Otherwise a child that outlives its parent would hold on to the parent's sockets, device memory
// and claimed module.
#pragma once

#include <array>
#include <utility>

namespace hccl {

// Moves a new descriptor to a number above those of the standard streams, because a program that
// has closed a standard stream may still write to that stream's number. Returns the new number. If
// no number is free, closes `fd` and returns -1 with errno set. Returns -1 if `fd` is -1.
[[nodiscard]] int above_standard_streams(int fd) noexcept;

class FileDescriptor {
 public:
  FileDescriptor() = default;
  // Takes ownership of `fd` (-1: none), and moves it above the standard streams. If the move fails,
  // the object is invalid and errno is set.
  explicit FileDescriptor(int fd) noexcept;
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  // Returns a duplicate of the descriptor, with close-on-exec set. Throws Error(hcclSystemError).
  [[nodiscard]] FileDescriptor duplicate() const;
  // Gives up ownership. Forked children no longer close the descriptor.
  [[nodiscard]] int release() noexcept;
  void reset() noexcept;

 private:
  int fd_ = -1;
};

// While the object lives, occupies the numbers of the standard streams that the program has closed.
// Code that opens descriptors itself (Asio, libibverbs) therefore gets other numbers. Reads and
// writes on the occupied numbers fail as before.
class StandardStreamPlaceholders {
 public:
  StandardStreamPlaceholders() noexcept;
  ~StandardStreamPlaceholders();
  StandardStreamPlaceholders(const StandardStreamPlaceholders&) = delete;
  StandardStreamPlaceholders& operator=(const StandardStreamPlaceholders&) = delete;

 private:
  std::array<int, 3> taken_{-1, -1, -1};
};

// close_in_forked_children() makes forked children close a descriptor that is not in a
// FileDescriptor, such as an Asio socket. forget_in_forked_children() undoes that.
void close_in_forked_children(int fd) noexcept;
void forget_in_forked_children(int fd) noexcept;

// Closes all descriptors that forked children must close. Called in the child by the fork handler.
// Async-signal-safe.
void close_remembered_descriptors() noexcept;

}  // namespace hccl
