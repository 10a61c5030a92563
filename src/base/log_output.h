// SPDX-License-Identifier: Apache-2.0
// The destination of log lines: stderr, or the file that HCCL_DEBUG_FILE names. If the program has
// reused the descriptor number of stderr for, say, a socket, nothing is written to it. A failed
// write does not kill the process with a signal.
#pragma once

#include <span>
#include <string>

#include <sys/uio.h>

namespace hccl {

// Sends later lines to the file that `pattern` names (%h: host, %p: process id). An empty pattern
// selects stderr, or no output if stderr is closed at the time of the call. Creates the file with
// access only for its owner. Throws Error(hcclInvalidArgument) if the file cannot be opened for
// writing or is not a regular file, for example if another user has put a symbolic link, FIFO or
// device there.
void choose_log_output(const std::string& pattern);

// Writes the parts as one line, in one system call. Drops the line if it cannot be written. Never
// raises SIGPIPE or SIGXFSZ. Preserves errno.
void write_log_line(std::span<const iovec> parts) noexcept;

// Returns whether writing a line now would block until the reader of a pipe or terminal catches up.
[[nodiscard]] bool log_would_wait() noexcept;

}  // namespace hccl
