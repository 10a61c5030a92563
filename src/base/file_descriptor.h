// SPDX-License-Identifier: Apache-2.0
// An owned descriptor, closed once. Every descriptor the library holds is also closed in a forked
// child, so that a child that outlives its parent keeps no socket, module or device memory of it
// alive.
#pragma once

#include <utility>

namespace hccl {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  // Takes ownership of `fd` (-1: none).
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
  // A second descriptor of the same file, close-on-exec. Throws hcclSystemError.
  [[nodiscard]] FileDescriptor duplicate() const;
  // Gives up ownership; the descriptor is no longer closed in forked children.
  [[nodiscard]] int release() noexcept;
  void reset() noexcept;

 private:
  int fd_ = -1;
};

// Remembers a descriptor that somebody else owns (an Asio socket) as one to close in forked
// children.
void close_in_forked_children(int fd) noexcept;
void forget_in_forked_children(int fd) noexcept;

// Closes them all: what the fork handler of the child does. Async-signal-safe.
void close_remembered_descriptors() noexcept;

}  // namespace hccl
