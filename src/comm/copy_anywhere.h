// SPDX-License-Identifier: Apache-2.0
// Copies between buffers of one rank, each in device memory or in host memory.
#pragma once

#include "device/arena.h"

#include <cstdint>

namespace hccl::comm {

// Copies `bytes` bytes. If both buffers are in host memory, copies through the staging buffer at
// `staging`; otherwise `staging` may be 0. Throws what the copies of device/copy.h throw.
void copy_anywhere(device::Arena& arena, std::uint64_t staging, std::uint64_t to,
                   std::uint64_t from, std::uint64_t bytes);

}  // namespace hccl::comm
