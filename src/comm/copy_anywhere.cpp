// SPDX-License-Identifier: Apache-2.0
#include "comm/copy_anywhere.h"

#include "device/address.h"
#include "device/copy.h"
#include "node/staging_layout.h"

#include <algorithm>

namespace hccl::comm {

void copy_anywhere(device::Arena& arena, std::uint64_t staging, std::uint64_t to,
                   std::uint64_t from, std::uint64_t bytes) {
  if (bytes == 0 || to == from) return;
  const bool to_device = device::is_device_address(to);
  const bool from_device = device::is_device_address(from);
  if (to_device && from_device) return device::copy_on_device(arena, to, from, bytes);
  if (to_device)
    return device::copy_to_device(arena, to, reinterpret_cast<const void*>(from), bytes);
  if (from_device) return device::copy_to_host(arena, reinterpret_cast<void*>(to), from, bytes);
  for (std::uint64_t done = 0; done < bytes; done += node::kStagingHalfBytes) {
    const std::uint64_t piece = std::min(node::kStagingHalfBytes, bytes - done);
    device::copy_to_device(arena, staging, reinterpret_cast<const void*>(from + done), piece);
    device::copy_to_host(arena, reinterpret_cast<void*>(to + done), staging, piece);
  }
}

}  // namespace hccl::comm
