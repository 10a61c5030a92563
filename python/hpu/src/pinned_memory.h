// SPDX-License-Identifier: Apache-2.0
// Pinned CPU memory: ordinary memory that is remembered as pinned, for the device reads it as well
// as any other.
#pragma once

#include <c10/core/Allocator.h>

namespace hccl_torch_hpu {

class PinnedMemory {
 public:
  [[nodiscard]] static c10::Allocator* allocator();
  // Returns whether `memory` lies in a block that has not been freed. Thread-safe.
  [[nodiscard]] static bool contains(const void* memory);
};

}  // namespace hccl_torch_hpu
