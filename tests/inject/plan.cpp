// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include "check.h"
#include "ranks.h"

#include <algorithm>
#include <cerrno>
#include <map>

namespace hccl::test {
namespace {

// Errors are injected only into the first calls of each function in each phase: kMostCalls calls,
// or kMostCallsOfAll in an exhaustive run (HCCL_TEST_SCALE of at least kScaleOfAll).
constexpr long kMostCalls = 10;
constexpr long kMostCallsOfAll = 40;
constexpr double kScaleOfAll = 100;

}  // namespace

std::string Injection::to_text() const {
  return join(phase, '/', function, '/', number, '/', error);
}

const std::vector<int>& plausible_errors(const std::string& function) {
  static const std::map<std::string, std::vector<int>> errors{
      {"accept4", {EMFILE, ENOBUFS, ECONNABORTED, EINTR, EPERM}},
      {"bind", {EACCES, ENOMEM, EADDRINUSE}},
      {"close", {EINTR, EIO}},
      {"connect", {ECONNREFUSED, EINTR, ENOMEM, EPERM, EAGAIN}},
      {"dup3", {EMFILE, EINTR}},
      {"epoll_create1", {EMFILE, ENOMEM}},
      {"epoll_ctl", {ENOSPC, ENOMEM}},
      {"epoll_wait", {EINTR}},
      {"eventfd", {EMFILE, ENOMEM}},
      {"fallocate", {EINTR, ENOSPC, EOPNOTSUPP}},
      {"fcntl", {EMFILE, EINVAL, EPERM}},
      {"fstat", {ENOMEM, EIO}},
      {"ftruncate", {ENOSPC, EINVAL, EINTR}},
      {"getifaddrs", {EMFILE, ENOBUFS, EPERM}},
      {"getpeername", {ENOBUFS, ENOTCONN}},
      {"getrandom", {ENOSYS, EINTR}},
      {"getsockname", {ENOBUFS}},
      {"getsockopt", {ENOBUFS, ENOPROTOOPT}},
      {"ioctl", {EINVAL, EPERM}},
      {"listen", {EADDRINUSE, EPERM}},
      {"lseek", {EINVAL, EIO}},
      {"madvise", {EINVAL, ENOMEM, EPERM}},
      {"memfd_create", {EMFILE, ENOMEM, ENOSYS, EINVAL, EPERM}},
      {"mmap", {ENOMEM, EPERM}},
      {"munmap", {ENOMEM}},
      {"open", {EMFILE, EACCES, ENOENT}},
      {"pidfd_open", {ENOSYS, EMFILE, EPERM, ENOMEM}},
      {"poll", {EINTR, ENOMEM}},
      {"ppoll", {EINTR, ENOMEM}},
      {"pread", {EINTR, EIO, ENOMEM}},
      {"pthread_create", {EAGAIN, EPERM}},
      {"pwrite", {EINTR, EIO, ENOSPC}},
      {"read", {EINTR, EIO}},
      {"recv", {EINTR, ECONNRESET, ENOMEM}},
      {"recvmsg", {EINTR, ECONNRESET, ENOMEM}},
      {"send", {EINTR, ENOBUFS, ENOMEM, ECONNRESET, EPIPE}},
      {"sendmsg", {EINTR, ENOBUFS, ENOMEM, ECONNRESET, EPIPE}},
      {"setsockopt", {EINVAL, ENOPROTOOPT, ENOBUFS}},
      {"socket", {EMFILE, ENOBUFS, EPERM, EACCES}},
      {"timerfd_create", {EMFILE, ENOMEM}},
      {"timerfd_settime", {EINVAL}},
      {"write", {EINTR, EPIPE}},
      {"writev", {EINTR, EPIPE, ENOSPC}},
  };
  static const std::vector<int> none;
  const auto found = errors.find(function);
  return found == errors.end() ? none : found->second;
}

std::vector<Injection> injections_into(const std::vector<CallCount>& counts) {
  const long most = test_scale() >= kScaleOfAll ? kMostCallsOfAll : kMostCalls;
  std::vector<Injection> all;
  for (const CallCount& count : counts) {
    for (long number = 1; number <= std::min(count.calls, most); ++number) {
      for (const int error : plausible_errors(count.function)) {
        all.push_back({count.phase, count.function, number, error});
      }
    }
  }
  return all;
}

}  // namespace hccl::test
