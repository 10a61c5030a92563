// SPDX-License-Identifier: Apache-2.0
// Writes log lines without a lock and without heap memory, so that a failing process can still
// report the reason.
#include "base/log.h"

#include "base/log_output.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>

#include <sys/uio.h>
#include <unistd.h>

namespace hccl {

constinit std::atomic<LogLevel> log_threshold{LogLevel::warning};

namespace {

constexpr std::array<const char*, 7> kLevelNames{"TRACE", "DEBUG", "INFO", "WARN",
                                                 "ERROR", "FATAL", "OFF"};

// The beginning of a log line, in a buffer on the stack. Text that does not fit is cut off.
class LineStart {
 public:
  LineStart& operator<<(std::string_view part) noexcept {
    const std::size_t length = std::min(part.size(), buffer_.size() - size_);
    std::memcpy(buffer_.data() + size_, part.data(), length);
    size_ += length;
    return *this;
  }
  LineStart& operator<<(int number) noexcept {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  }
  [[nodiscard]] iovec part() noexcept { return {buffer_.data(), size_}; }

 private:
  std::array<char, 256> buffer_{};
  std::size_t size_ = 0;
};

const char* short_host_name() noexcept {
  struct Name {
    std::array<char, 256> text{};
    Name() {
      if (gethostname(text.data(), text.size() - 1) != 0) std::strcpy(text.data(), "?");
    }
  };
  static const Name name;
  return name.text.data();
}

}  // namespace

void configure_log(const Config& config) {
  // First, because choosing the output may fail, and the failure is logged.
  log_threshold.store(config.log_level, std::memory_order_relaxed);
  choose_log_output(config.log_file);
  static_cast<void>(short_host_name());
}

void log_line(LogLevel level, const char* subsystem, const std::string& message) noexcept {
  log_parts(level, subsystem, {message});
}

void log_parts(LogLevel level, const char* subsystem,
               std::initializer_list<std::string_view> parts) noexcept {
  if (log_threshold.load(std::memory_order_relaxed) == LogLevel::off) return;
  LineStart start;
  start << "hccl " << kLevelNames[static_cast<std::size_t>(level)] << " " << short_host_name()
        << ":" << static_cast<int>(getpid()) << " " << subsystem << ": ";
  constexpr std::size_t kMostParts = 8;
  std::array<iovec, kMostParts + 2> vectors{start.part()};
  std::size_t count = 1;
  for (const std::string_view part : parts) {
    if (count > kMostParts) break;
    vectors[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  char newline = '\n';
  vectors[count++] = {&newline, 1};
  write_log_line(std::span(vectors).first(count));
}

}  // namespace hccl
