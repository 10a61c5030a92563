// SPDX-License-Identifier: Apache-2.0
// Conversions between pointers and addresses: programs keep addresses of host and of device memory
// as numbers.
#pragma once

#include <cstdint>

namespace peers {

inline std::uint64_t address(const void* memory) { return reinterpret_cast<std::uint64_t>(memory); }
// NOLINTNEXTLINE(performance-no-int-to-ptr): the libraries take addresses as pointers
inline void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace peers
