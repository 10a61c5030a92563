// SPDX-License-Identifier: Apache-2.0
// The bytes that the elements of a tensor occupy: runs of bytes, repeated at the strides of the
// dimensions. Therefore two columns of a matrix do not overlap.
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
  // Covers a tensor that has a storage.
  explicit MemoryRange(const at::Tensor& tensor);
  // Covers all bytes from `begin` to `end`.
  MemoryRange(const std::byte* begin, const std::byte* end)
      : begin_(begin), end_(end), run_(end - begin) {}

  [[nodiscard]] const std::byte* begin() const noexcept { return begin_; }
  [[nodiscard]] const std::byte* end() const noexcept { return end_; }
  // Returns the first run that ends after `from`, without the bytes before `from`, or nothing if
  // there is none. Overlapping elements count as one run.
  [[nodiscard]] std::optional<Run> run_from(const std::byte* from) const noexcept;
  // Returns false only if the ranges have no byte in common. For ranges with many runs, may return
  // true although they do not overlap.
  [[nodiscard]] bool overlaps(const MemoryRange& other) const noexcept;

 private:
  struct Dimension {
    std::int64_t stride = 0;  // bytes
    std::int64_t size = 0;
    std::int64_t extent = 0;  // number of bytes from the first to the last occupied byte of a step
  };

  [[nodiscard]] bool is_apart_by_distance(const MemoryRange& other) const noexcept;

  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;
  std::int64_t run_ = 0;     // bytes of each run
  std::int64_t period_ = 0;  // the greatest common divisor of the strides; 0 if there are no gaps
  c10::SmallVector<Dimension, 3> dimensions_;  // outermost first
};

// Memory of an HPU tensor that an operation uses, and how the operation uses it.
struct DeviceUse {
  MemoryRange range;
  bool is_written = false;
};

}  // namespace hccl_torch
