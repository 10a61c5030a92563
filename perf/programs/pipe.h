// SPDX-License-Identifier: Apache-2.0
// A pipe whose two ends are closed separately. The reader gets an end of file when the last process
// that holds the write end closes it or ends.
#pragma once

#include "text.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace hccl_perf {

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0)
      throw RunError(text("cannot make a pipe: ", std::strerror(errno)));
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] int read_end() const { return ends_[0]; }
  [[nodiscard]] int write_end() const { return ends_[1]; }
  void close_read() { close_end(ends_[0]); }
  void close_write() { close_end(ends_[1]); }

 private:
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }

  int ends_[2] = {-1, -1};
};

}  // namespace hccl_perf
