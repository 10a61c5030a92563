// SPDX-License-Identifier: Apache-2.0
// Copies and fills device memory, as part of a stream's work. Reads holes without allocating their
// pages. For a bad host pointer, throws an error instead of raising a signal.
#pragma once

#include "device/address.h"
#include "device/host_memory.h"

#include <cstddef>
#include <cstdint>

namespace hccl::device {

class Arena;

// by_copy: each copy lets the kernel check its host memory. by_caller: the caller has called
// recheck_host_buffer() for a whole buffer, which the same thread then copies in pieces.
enum class HostCheck : std::uint8_t { by_copy, by_caller };

// Prepares this thread for copies from (read) or to (write) pieces of a host buffer. Pass the
// result to the copies.
[[nodiscard]] HostCheck recheck_host_buffer(std::uint64_t address, std::uint64_t bytes,
                                            HostAccess access);

// All copies throw Error(hcclOutOfMemory), Error(hcclSystemError) and, for a bad host address,
// Error(hcclInvalidArgument). They do not check device ranges, because those are checked when the
// work is queued.
void copy_to_device(Arena& arena, DeviceAddress destination, const void* source, std::size_t bytes,
                    HostCheck check = HostCheck::by_copy);
void copy_to_host(Arena& arena, void* destination, DeviceAddress source, std::size_t bytes,
                  HostCheck check = HostCheck::by_copy);
// Populates device memory that is used repeatedly, such as a staging buffer, so that copies between
// this memory and the host can use plain loads and stores. Throws Error(hcclOutOfMemory).
void populate_for_copies(Arena& arena, DeviceAddress address, std::size_t bytes);
void copy_on_device(Arena& arena, DeviceAddress destination, DeviceAddress source,
                    std::size_t bytes);
// Fills `bytes` bytes, a multiple of `width`, with the lowest `width` (1, 2 or 4) bytes of
// `pattern`.
void fill(Arena& arena, DeviceAddress destination, std::uint32_t pattern, std::size_t width,
          std::size_t bytes);

}  // namespace hccl::device
