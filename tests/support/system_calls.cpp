// SPDX-License-Identifier: Apache-2.0
// Makes system calls fail with a seccomp filter.
#include "system_calls.h"

#include "check.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr std::uint16_t kJumpIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr std::uint16_t kReturn = BPF_RET | BPF_K;

}  // namespace

void refuse_system_calls(const SystemCalls& calls, int error) {
  // The filter compares the lower 32 bits of an argument, which come first in little-endian order.
  static_assert(std::endian::native == std::endian::little);
  const auto argument =
      static_cast<std::uint32_t>(offsetof(seccomp_data, args) + std::size_t{calls.argument} * 8);
  const auto refusal = SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
  std::vector<sock_filter> program{
      {kLoad, 0, 0, offsetof(seccomp_data, nr)},
      {kJumpIfEqual, 1, 0, static_cast<std::uint32_t>(calls.number)},
      {kReturn, 0, 0, SECCOMP_RET_ALLOW},
  };
  if (!calls.values.empty()) {
    program.push_back({kLoad, 0, 0, argument});
    auto to_refusal = static_cast<std::uint8_t>(calls.values.size());
    for (const std::uint32_t value : calls.values)
      program.push_back({kJumpIfEqual, to_refusal--, 0, value});
    program.push_back({kReturn, 0, 0, SECCOMP_RET_ALLOW});
  }
  program.push_back({kReturn, 0, 0, refusal});
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "cannot set PR_SET_NO_NEW_PRIVS");
  require(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0,
          join("cannot install a seccomp filter: ", std::strerror(errno)));
}

}  // namespace hccl::test
