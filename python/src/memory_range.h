// SPDX-License-Identifier: Apache-2.0
// The bytes from a tensor's first element to its last.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hccl_torch {

struct MemoryRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;

  [[nodiscard]] bool overlaps(const MemoryRange& other) const noexcept {
    return begin < other.end && other.begin < end;
  }
};

// Memory of an HPU tensor that an operation uses.
struct DeviceUse {
  MemoryRange range;
  bool is_written = false;
};

// Returns the range of a tensor that has a storage, gaps between its elements included.
[[nodiscard]] inline MemoryRange memory_of(const at::Tensor& tensor) {
  const auto* const begin = static_cast<const std::byte*>(tensor.const_data_ptr());
  if (tensor.numel() == 0) return {begin, begin};
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return {begin, begin + (last + 1) * static_cast<std::int64_t>(tensor.element_size())};
}

}  // namespace hccl_torch
