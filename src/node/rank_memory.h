// SPDX-License-Identifier: Apache-2.0
// Accesses the ranks' device memory. Reading a range that is a hole (memory that has never been
// written) allocates no pages.
#pragma once

#include "device/arena.h"
#include "node/node_segment.h"

#include <cstddef>
#include <cstdint>

namespace hccl::node {

// The longest range that as_source() accepts, in bytes.
inline constexpr std::uint64_t kMaxSourceBytes = 256 << 10;

// Returns whether a range of this rank's memory file consists of data, a hole or both. If the range
// consists of data only, maps its pages. Throws Error(hcclOutOfMemory).
[[nodiscard]] device::Content resolve_content(device::Arena& arena, std::uint64_t file_offset,
                                              std::uint64_t bytes);
// Copies this rank's device or host memory to `destination`. Returns whether the source consists of
// data, a hole or both; host memory is always data. Throws Error.
device::Content load(device::Arena& arena, device::DeviceAddress address, std::uint64_t bytes,
                     std::byte* destination);
// Returns a pointer for reading a range of a rank's memory. `content`: the content that the rank
// has published. `mapped`: whether the range is in this process's page tables; if not, maps its
// pages, unless the whole range is a hole. Throws Error(hcclOutOfMemory).
[[nodiscard]] const std::byte* as_source(device::ArenaView& memory, std::uint64_t file_offset,
                                         std::uint64_t bytes, device::Content content, bool mapped);
// Maps a range of a rank's memory, unless it is already mapped, and returns a pointer to it. Do not
// call this for holes in another rank's memory, because it would allocate their pages. Throws
// Error(hcclOutOfMemory).
[[nodiscard]] std::byte* mapped_memory(const NodeSegment& node, int rank, std::uint64_t file_offset,
                                       std::uint64_t bytes);

}  // namespace hccl::node
