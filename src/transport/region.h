// SPDX-License-Identifier: Apache-2.0
// A range of memory as transports know it: where it is mapped, and of which file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hccl::transport {

// `fd` stays owned by the creator of the region; -1 if no file backs the memory.
struct Region {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  int fd = -1;
  std::uint64_t offset = 0;  // of `address`, in the file
};

}  // namespace hccl::transport
