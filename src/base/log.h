// SPDX-License-Identifier: Apache-2.0
// Logging to stderr or HCCL_DEBUG_FILE, never to stdout. One write per line, so lines of several
// ranks do not mix.
#pragma once

#include "base/config.h"
#include "base/text.h"

#include <string>

namespace hccl {

// Sets level and destination. Throws Error(hcclInvalidArgument) if HCCL_DEBUG_FILE cannot be
// opened.
void configure_log(const Config& config);

[[nodiscard]] bool log_enabled(LogLevel level) noexcept;

// Writes "hccl <LEVEL> <host>:<pid> <subsystem>: <message>\n" in one write(2).
void log_line(LogLevel level, const char* subsystem, const std::string& message) noexcept;

// Builds the message only if the level is on.
template <class... Parts>
void log(LogLevel level, const char* subsystem, const Parts&... parts) {
  if (log_enabled(level)) log_line(level, subsystem, text(parts...));
}

}  // namespace hccl
