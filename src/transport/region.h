// SPDX-License-Identifier: Apache-2.0
// Memory as transports know it: where it is mapped, and which file it is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hccl::transport {

// The descriptor belongs to whoever made the region; -1 where the memory is no file.
struct Region {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  int fd = -1;
  std::uint64_t offset = 0;  // of `address` in the file
};

}  // namespace hccl::transport
