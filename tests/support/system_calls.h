// SPDX-License-Identifier: Apache-2.0
// System calls that fail as in a sandbox or on an older kernel.
#pragma once

#include <cstdint>
#include <vector>

namespace hccl::test {

// The calls with this number; if `values` is not empty, only those whose argument number
// `argument` (from 0) has one of them.
struct SystemCalls {
  long number = 0;
  unsigned argument = 0;
  std::vector<std::uint32_t> values{};
};

// Makes such calls fail with `error` in all threads of this process and in its children, for good.
// Throws Failure if the kernel has no filters.
void refuse_system_calls(const SystemCalls& calls, int error);

}  // namespace hccl::test
