// SPDX-License-Identifier: Apache-2.0
// Chooses where log lines go: to stderr, or to the file that HCCL_DEBUG_FILE names. A line is never
// written to a descriptor that is not meant for it, and no process ends because the reader has
// gone.
#pragma once

#include <span>
#include <string>

#include <sys/uio.h>

namespace hccl {

// Opens the file of this pattern (%h: host, %p: process id) for the lines from now on; an empty
// pattern chooses stderr, or nothing if stderr is closed now. Creates the file for its owner alone.
// Throws Error(hcclInvalidArgument) for a file that cannot be written, and for a symbolic link, a
// directory, a FIFO or a device, which somebody else may have put there.
void choose_log_output(const std::string& pattern);

// Writes the parts as one line, in one system call. Never raises SIGPIPE or SIGXFSZ; a line that
// cannot be written is lost. Keeps errno.
void write_log_line(std::span<const iovec> parts) noexcept;

// Returns true if a line written now would wait for the reader of a pipe or a terminal.
[[nodiscard]] bool log_would_wait() noexcept;

}  // namespace hccl
