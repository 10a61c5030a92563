// SPDX-License-Identifier: Apache-2.0
// Opens the log file. Before each write to stderr, checks that the program has not reused its
// descriptor number.
#include "base/log_output.h"

#include "base/cancellation.h"
#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/process.h"
#include "base/text.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hccl {
namespace {

constexpr int kNowhere = -1;

std::atomic<int> destination{STDERR_FILENO};
// The descriptor of the log file, which choose_log_output() opens. It is never closed: otherwise
// its number could be reused while another thread writes to it.
int log_file_descriptor = -1;

// The device and inode of the file that stderr referred to when choose_stderr() was called.
std::atomic<std::uint64_t> stderr_device{0};
std::atomic<std::uint64_t> stderr_inode{0};

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

[[noreturn]] void refuse(const std::string& pattern, const std::string& path,
                         const std::string& why) {
  throw Error(hcclInvalidArgument,
              text("HCCL_DEBUG_FILE=", quoted(pattern), " is not valid: ", quoted(path), ' ', why,
                   "; set it to the path of a regular file that this process may write"));
}

// Opens the file that the pattern names. With O_NONBLOCK, opening a FIFO that has no reader fails
// instead of blocking. Throws Error(hcclInvalidArgument).
int open_regular_file(const std::string& pattern) {
  constexpr int kFlags =
      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
  const std::string path = expanded_path(pattern);
  const int fd = above_standard_streams(open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (fd < 0) {
    if (errno == ELOOP) refuse(pattern, path, "is a symbolic link");
    if (errno == EISDIR || errno == ENXIO) refuse(pattern, path, "is not a regular file");
    refuse(pattern, path, text("cannot be opened: ", system_error_text(errno)));
  }
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
  close(fd);
  refuse(pattern, path, "is not a regular file");
}

void choose_file(const std::string& pattern) {
  const int fd = open_regular_file(pattern);
  if (log_file_descriptor < 0) {
    log_file_descriptor = fd;
  } else {
    static_cast<void>(dup3(fd, log_file_descriptor, O_CLOEXEC));
    close(fd);
  }
  destination.store(log_file_descriptor, std::memory_order_relaxed);
}

void choose_stderr() noexcept {
  struct stat status {};
  const bool open = fstat(STDERR_FILENO, &status) == 0;
  stderr_device.store(status.st_dev, std::memory_order_relaxed);
  stderr_inode.store(status.st_ino, std::memory_order_relaxed);
  destination.store(open ? STDERR_FILENO : kNowhere, std::memory_order_relaxed);
}

// Returns false if stderr is closed, or if the program has reused its descriptor number for, say, a
// socket. Accepts any regular file, pipe or character device, because the program may have
// redirected stderr to it.
bool is_still_stderr() noexcept {
  struct stat status {};
  if (fstat(STDERR_FILENO, &status) != 0) return false;
  if (status.st_dev == stderr_device.load(std::memory_order_relaxed) &&
      status.st_ino == stderr_inode.load(std::memory_order_relaxed)) {
    return true;
  }
  return S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode);
}

// Blocks SIGPIPE and SIGXFSZ in this thread while the object lives, and discards any that a write
// raises. Otherwise a failed write would kill the process.
class WriteSignalBlock {
 public:
  WriteSignalBlock() noexcept {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGPIPE);
    sigaddset(&signals_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      if (sigismember(&pending, signal) == 1)
        sigdelset(&signals_, signal);  // already pending: must not be discarded
    }
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~WriteSignalBlock() {
    constexpr timespec kNoTime{};
    while (sigtimedwait(&signals_, nullptr, &kNoTime) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WriteSignalBlock(const WriteSignalBlock&) = delete;
  WriteSignalBlock& operator=(const WriteSignalBlock&) = delete;

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

}  // namespace

void choose_log_output(const std::string& pattern) {
  if (pattern.empty()) return choose_stderr();
  choose_file(pattern);
}

// Does not write the rest of a partial write, because another rank's line may come in between.
void write_log_line(std::span<const iovec> parts) noexcept {
  const CancellationBlock no_cancellation;
  const int saved_errno = errno;
  const int fd = destination.load(std::memory_order_relaxed);
  if (fd != kNowhere && (fd != STDERR_FILENO || is_still_stderr())) {
    const WriteSignalBlock block;
    while (writev(fd, parts.data(), static_cast<int>(parts.size())) < 0 && errno == EINTR) {
    }
  }
  errno = saved_errno;
}

bool log_would_wait() noexcept {
  const int saved_errno = errno;
  pollfd output{destination.load(std::memory_order_relaxed), POLLOUT, 0};
  const bool waits = poll(&output, 1, 0) == 0 && output.fd != kNowhere;
  errno = saved_errno;
  return waits;
}

}  // namespace hccl
