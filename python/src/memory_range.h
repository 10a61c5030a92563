// SPDX-License-Identifier: Apache-2.0
// The bytes that the elements of a tensor occupy, usually without the gaps between them, so that
// two columns of a matrix do not overlap. A range is a run of bytes that repeats at the strides of
// the dimensions. If elements overlap or interleave, a run may include gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace hccl_torch {

class MemoryRange {
 public:
  // A contiguous run of bytes.
  struct Run {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
  };

  MemoryRange() = default;
  // Covers the elements of a tensor, which must have a storage.
  explicit MemoryRange(const at::Tensor& tensor);
  // Covers the bytes in [begin, end).
  MemoryRange(const std::byte* begin, const std::byte* end)
      : begin_(begin), end_(end), run_(end - begin) {}

  [[nodiscard]] const std::byte* begin() const noexcept { return begin_; }
  [[nodiscard]] const std::byte* end() const noexcept { return end_; }
  // Returns the first run that ends after `from`, without its bytes before `from`. Returns nullopt
  // if no run ends after `from`.
  [[nodiscard]] std::optional<Run> run_from(const std::byte* from) const noexcept;
  // Returns false only if the ranges have no byte in common. For ranges with many runs, may return
  // true even if they have no byte in common.
  [[nodiscard]] bool overlaps(const MemoryRange& other) const noexcept;

 private:
  struct Dimension {
    std::int64_t stride = 0;  // bytes
    std::int64_t size = 0;
    std::int64_t extent = 0;  // number of bytes that one index spans
  };

  [[nodiscard]] bool is_apart_by_distance(const MemoryRange& other) const noexcept;

  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;
  std::int64_t run_ = 0;     // length of each run in bytes
  std::int64_t period_ = 0;  // the greatest common divisor of the strides; 0 if there are no gaps
  c10::SmallVector<Dimension, 3> dimensions_;  // outermost first
};

// Memory of an HPU tensor that an operation uses, and whether the operation writes to it.
struct DeviceUse {
  MemoryRange range;
  bool is_written = false;
};

}  // namespace hccl_torch
