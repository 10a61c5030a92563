// SPDX-License-Identifier: Apache-2.0
// Makes system calls fail as in a sandbox or on an older kernel.
#pragma once

#include <cstdint>
#include <vector>

namespace hccl::test {

// The system calls with a number; if `values` is not empty, only those whose argument with the
// index `argument` is one of the values.
struct SystemCalls {
  long number = 0;
  unsigned argument = 0;
  std::vector<std::uint32_t> values{};
};

// Makes the system calls fail with `error` for good, in all threads of this process and in its
// children. Throws Failure if the kernel does not support filters.
void refuse_system_calls(const SystemCalls& calls, int error);

}  // namespace hccl::test
