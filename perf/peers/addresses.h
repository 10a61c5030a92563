// SPDX-License-Identifier: Apache-2.0
// Converts between pointers and integers: the programs store host and device addresses alike as
// integers.
#pragma once

#include <cstdint>

namespace peers {

inline std::uint64_t address(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }
// NOLINTNEXTLINE(performance-no-int-to-ptr): the libraries take addresses as pointers
inline void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace peers
