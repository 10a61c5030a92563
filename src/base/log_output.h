// SPDX-License-Identifier: Apache-2.0
// Chooses the destination of log lines: stderr, or the file that HCCL_DEBUG_FILE names. Never
// writes to a descriptor that the program has reused for something else, and never lets SIGPIPE end
// the process.
#pragma once

#include <span>
#include <string>

#include <sys/uio.h>

namespace hccl {

// Opens the file of this pattern (%h: host, %p: process id) for all later lines; an empty pattern
// selects stderr, or no output if stderr is closed at the time of the call. Creates the file with
// access for its owner only. Throws Error(hcclInvalidArgument) for a file that cannot be written,
// and for a symbolic link, a directory, a FIFO or a device, because another user may have put it
// there.
void choose_log_output(const std::string& pattern);

// Writes the parts as one line, in one system call. Never raises SIGPIPE or SIGXFSZ; a line that
// cannot be written is lost. Preserves errno.
void write_log_line(std::span<const iovec> parts) noexcept;

// Returns true if writing a line now would block until a pipe or a terminal is read.
[[nodiscard]] bool log_would_wait() noexcept;

}  // namespace hccl
