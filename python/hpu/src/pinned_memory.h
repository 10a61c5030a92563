// SPDX-License-Identifier: Apache-2.0
// Pinned CPU memory. The emulated device can read any memory, so pinned memory is ordinary memory
// that is recorded as pinned.
#pragma once

#include <c10/core/Allocator.h>

namespace hccl_torch_hpu {

class PinnedMemory {
 public:
  [[nodiscard]] static c10::Allocator* allocator();
  // Returns whether `memory` lies in a block that has not been freed. Thread safety: any thread.
  [[nodiscard]] static bool contains(const void* memory);
};

}  // namespace hccl_torch_hpu
