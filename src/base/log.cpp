// SPDX-License-Identifier: Apache-2.0
// Writing a log line takes one system call, no lock and no heap, so that a failing process can
// still say why.
#include "base/log.h"

#include "base/error.h"
#include "base/process.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace hccl {
namespace {

std::atomic<LogLevel> threshold{LogLevel::warning};
std::atomic<int> destination{STDERR_FILENO};
int log_file_descriptor =
    -1;  // configure_log's alone; kept for good, so that no writer sees its number reused

constexpr std::array<const char*, 7> kLevelNames{"TRACE", "DEBUG", "INFO", "WARN",
                                                 "ERROR", "FATAL", "OFF"};

// Text in a buffer on the stack; what does not fit is cut.
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

std::string expanded_path(const std::string& pattern) {
  std::string path;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char next = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (pattern[at] != '%' || (next != 'h' && next != 'p' && next != '%')) {
      path += pattern[at];
      continue;
    }
    path += next == 'h' ? host_name() : next == 'p' ? std::to_string(getpid()) : "%";
    ++at;
  }
  return path;
}

void open_log_file(const std::string& pattern) {
  const std::string path = expanded_path(pattern);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
  if (fd < 0) {
    throw Error(
        hcclInvalidArgument,
        text("HCCL_DEBUG_FILE=", quoted(pattern), " is not valid: cannot open ", quoted(path), " (",
             system_error_text(errno), "): set it to the path of a file that can be written"));
  }
  if (log_file_descriptor < 0) {
    log_file_descriptor = fd;
  } else {
    static_cast<void>(dup3(fd, log_file_descriptor, O_CLOEXEC));
    close(fd);
  }
  destination.store(log_file_descriptor, std::memory_order_relaxed);
}

// A short write is left as it is: a second write could land behind another rank's line.
void write_parts(const iovec* parts, int count) noexcept {
  const int saved_errno = errno;
  while (writev(destination.load(std::memory_order_relaxed), parts, count) < 0 && errno == EINTR) {
  }
  errno = saved_errno;
}

}  // namespace

void configure_log(const Config& config) {
  if (config.log_file.empty()) {
    destination.store(STDERR_FILENO, std::memory_order_relaxed);
  } else {
    open_log_file(config.log_file);
  }
  static_cast<void>(short_host_name());
  threshold.store(config.log_level, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) noexcept {
  return level >= threshold.load(std::memory_order_relaxed) && level != LogLevel::off;
}

void log_line(LogLevel level, const char* subsystem, const std::string& message) noexcept {
  LineStart start;
  start << "hccl " << kLevelNames[static_cast<std::size_t>(level)] << " " << short_host_name()
        << ":" << static_cast<int>(getpid()) << " " << subsystem << ": ";
  char newline = '\n';
  const std::array<iovec, 3> parts{
      start.part(), iovec{const_cast<char*>(message.data()), message.size()}, iovec{&newline, 1}};
  write_parts(parts.data(), static_cast<int>(parts.size()));
}

}  // namespace hccl
