// SPDX-License-Identifier: Apache-2.0
// Reads the ranks' device memory without allocating pages for holes (memory that has never been
// written).
#pragma once

#include "device/arena.h"

#include <cstddef>
#include <cstdint>

namespace hccl::node {

// The longest range that as_source() can return.
inline constexpr std::uint64_t kMaxSourceBytes = 256 << 10;

// Returns whether a range of this rank's memory file consists of data, a hole or both. Maps the
// range's pages if it consists of data only.
[[nodiscard]] device::Content resolve_content(device::Arena& arena, std::uint64_t file_offset,
                                              std::uint64_t bytes);
// Copies this rank's device or host memory to `destination`. Returns whether that memory holds
// data, holes or both. Throws Error, also if the host memory cannot be read.
device::Content load(device::Arena& arena, device::DeviceAddress address, std::uint64_t bytes,
                     std::byte* destination);
// Returns a pointer for reading a range of a rank's memory. `content`: the content that the rank
// has published. `mapped`: whether the whole range is in this process's page tables; if not, maps
// its pages. Throws Error(hcclOutOfMemory).
[[nodiscard]] const std::byte* as_source(device::ArenaView& memory, std::uint64_t file_offset,
                                         std::uint64_t bytes, device::Content content, bool mapped);

}  // namespace hccl::node
