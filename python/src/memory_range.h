// SPDX-License-Identifier: Apache-2.0
// The bytes that the elements of a tensor lie in: one piece, or runs at regular distances, so that
// two columns of a matrix have nothing in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hccl_torch {

struct MemoryRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  // Each run of `run` bytes begins a multiple of `period` bytes behind `begin`. 0: there are no
  // gaps.
  std::int64_t period = 0;
  std::int64_t run = 0;

  // Returns false only if no byte is part of both. Both are looked at as if their runs went on for
  // ever, at the greatest common distance.
  [[nodiscard]] bool overlaps(const MemoryRange& other) const noexcept {
    if (begin >= other.end || other.begin >= end) return false;
    const std::int64_t common = std::gcd(period, other.period);
    if (common == 0) return true;
    const std::int64_t offset = ((other.begin - begin) % common + common) % common;
    return offset < length_of_run() || offset + other.length_of_run() > common;
  }

 private:
  [[nodiscard]] std::int64_t length_of_run() const noexcept {
    return period == 0 ? end - begin : run;
  }
};

// Memory of an HPU tensor that an operation uses.
struct DeviceUse {
  MemoryRange range;
  bool is_written = false;
};

// Returns the range of a tensor that has a storage.
[[nodiscard]] inline MemoryRange memory_of(const at::Tensor& tensor) {
  MemoryRange range;
  if (tensor.numel() == 0) return range;
  range.begin = static_cast<const std::byte*>(tensor.const_data_ptr());
  const auto bytes = static_cast<std::int64_t>(tensor.element_size());
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // stride in bytes, and size
  if (!tensor.is_contiguous()) {
    for (std::int64_t i = 0; i < tensor.dim(); ++i) {
      if (tensor.size(i) > 1 && tensor.stride(i) > 0)
        dimensions.emplace_back(tensor.stride(i) * bytes, tensor.size(i));
    }
    std::sort(dimensions.begin(), dimensions.end());
  }
  range.run = tensor.is_contiguous() ? static_cast<std::int64_t>(tensor.nbytes()) : bytes;
  std::int64_t last = range.run;
  for (const auto& [stride, size] : dimensions) {
    last += (size - 1) * stride;
    if (range.period == 0 && stride <= range.run) {
      range.run = last;
    } else {
      range.period = std::gcd(range.period, stride);
    }
  }
  range.end = range.begin + last;
  return range;
}

}  // namespace hccl_torch
