// SPDX-License-Identifier: Apache-2.0
// Captures what this process writes to stderr, one write at a time.
#pragma once

#include <array>
#include <cstdlib>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

namespace hccl::test {

// Replaces stderr with a datagram socket, where each write(2) arrives as one datagram.
class CapturedStderr {
 public:
  CapturedStderr() : saved_(dup(STDERR_FILENO)) {
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends_.data()) != 0) std::abort();
    dup2(ends_[1], STDERR_FILENO);
  }
  ~CapturedStderr() {
    dup2(saved_, STDERR_FILENO);
    for (const int fd : {saved_, ends_[0], ends_[1]}) close(fd);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  // Returns the content of the next write, or an empty string if there was none.
  std::string next_write() {
    std::array<char, 8192> buffer{};
    const ssize_t length = recv(ends_[0], buffer.data(), buffer.size(), MSG_DONTWAIT);
    return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : "";
  }

 private:
  std::array<int, 2> ends_{};
  int saved_;
};

}  // namespace hccl::test
