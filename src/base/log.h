// SPDX-License-Identifier: Apache-2.0
// Logging to stderr or HCCL_DEBUG_FILE, never to stdout. Each line is a single write, to keep lines
// from different ranks apart.
#pragma once

#include "base/config.h"
#include "base/text.h"

#include <atomic>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>

namespace hccl {

// Sets the level and the destination. Throws Error(hcclInvalidArgument) if HCCL_DEBUG_FILE is not a
// regular file that can be written.
void configure_log(const Config& config);

// log() does not write lines below this level. Set by configure_log().
extern constinit std::atomic<LogLevel> log_threshold;

// Returns whether lines of this level are written. Costs one relaxed load.
[[nodiscard]] inline bool log_enabled(LogLevel level) noexcept {
  return level >= log_threshold.load(std::memory_order_relaxed) && level != LogLevel::off;
}

// Writes "hccl <LEVEL> <host>:<pid> <subsystem>: <message>\n" in one system call. Ignores the
// threshold, but writes nothing if it is LogLevel::off.
void log_line(LogLevel level, const char* subsystem, const std::string& message) noexcept;

// Like log_line(), for a message in at most eight parts. Uses no heap memory, so it works even when
// memory is short.
void log_parts(LogLevel level, const char* subsystem,
               std::initializer_list<std::string_view> parts) noexcept;

// Builds and writes a line if its level is enabled.
template <class... Parts>
void log(LogLevel level, const char* subsystem, const Parts&... parts) noexcept {
  if (!log_enabled(level)) return;
  try {
    log_line(level, subsystem, text(parts...));
  } catch (const std::bad_alloc&) {
    // There is no memory for the line, so it is lost.
  }
}

}  // namespace hccl
