// SPDX-License-Identifier: Apache-2.0
// Exports device memory as a dma-buf, for drivers that can import one.
#pragma once

#include "base/file_descriptor.h"
#include "device/arena.h"

namespace hccl::device {

// Returns a dma-buf of the pages that contain the range. The dma-buf keeps these pages alive even
// after the memory is freed. Throws Error(hcclInvalidArgument) if the range is empty or not within
// one allocation, and Error(hcclUnsupported) if the system does not create the dma-buf.
[[nodiscard]] FileDescriptor export_dma_buffer(Arena& arena, DeviceAddress address,
                                               std::uint64_t bytes);

}  // namespace hccl::device
