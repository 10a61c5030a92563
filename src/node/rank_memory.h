// SPDX-License-Identifier: Apache-2.0
// Reads of the ranks' device memory that leave holes (memory that nobody ever wrote) as they are.
#pragma once

#include "device/arena.h"

#include <cstddef>
#include <cstdint>

namespace hccl::node {

// The longest range that as_source() can show.
inline constexpr std::uint64_t kMaxSourceBytes = 256 << 10;

// Returns what a range of this rank's memory file holds, and maps its pages if that is data.
[[nodiscard]] device::Content resolve_content(device::Arena& arena, std::uint64_t file_offset,
                                              std::uint64_t bytes);
// Copies this rank's device memory to `destination`. Returns what it held.
device::Content load(device::Arena& arena, device::DeviceAddress address, std::uint64_t bytes,
                     std::byte* destination);
// Returns a range of a rank's memory to be read. `content`: what the rank has said that it holds.
// `mapped`: all of it is in this process's page tables; else its pages are mapped now. Throws
// Error(hcclOutOfMemory).
[[nodiscard]] const std::byte* as_source(device::ArenaView& memory, std::uint64_t file_offset,
                                         std::uint64_t bytes, device::Content content, bool mapped);

}  // namespace hccl::node
