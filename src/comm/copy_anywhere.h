// SPDX-License-Identifier: Apache-2.0
// Copies between the buffers of one rank, each of which is in device memory or in host memory.
#pragma once

#include "device/arena.h"

#include <cstdint>

namespace hccl::comm {

// Copies `bytes` bytes. Throws Error for an invalid address. `staging` is the address of a staging
// buffer, through which the copy goes if both buffers are in host memory; otherwise it may be 0.
void copy_anywhere(device::Arena& arena, std::uint64_t staging, std::uint64_t to,
                   std::uint64_t from, std::uint64_t bytes);

}  // namespace hccl::comm
