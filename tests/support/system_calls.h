// SPDX-License-Identifier: Apache-2.0
// Makes system calls fail as in a sandbox or on an older kernel.
#pragma once

#include <cstdint>
#include <vector>

namespace hccl::test {

// Selects system calls by number. If `values` is not empty, the argument at index `argument` must
// also be one of `values`.
struct SystemCalls {
  long number = 0;
  unsigned argument = 0;
  std::vector<std::uint32_t> values{};
};

// From now on, makes the selected system calls fail with `error` in all threads of this process and
// in its children. Throws Failure if the kernel does not support filters.
void refuse_system_calls(const SystemCalls& calls, int error);

}  // namespace hccl::test
