// SPDX-License-Identifier: Apache-2.0
#include "memory_range.h"

#include <algorithm>
#include <numeric>

namespace hccl_torch {

namespace {

// The maximum number of runs that overlaps() compares. Comparing that many takes a few
// milliseconds.
constexpr int kMaxRuns = 1 << 18;

}  // namespace

MemoryRange::MemoryRange(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;
  begin_ = static_cast<const std::byte*>(tensor.const_data_ptr());
  run_ = static_cast<std::int64_t>(tensor.element_size());
  if (tensor.is_contiguous()) {
    run_ = static_cast<std::int64_t>(tensor.nbytes());
  } else {
    for (std::int64_t i = 0; i < tensor.dim(); ++i) {
      if (tensor.size(i) > 1 && tensor.stride(i) > 0)
        dimensions_.push_back({tensor.stride(i) * run_, tensor.size(i), 0});
    }
    std::ranges::sort(dimensions_, {}, &Dimension::stride);
  }
  std::int64_t extent = run_;
  std::size_t kept = 0;
  for (Dimension dimension : dimensions_) {
    const std::int64_t whole = extent + (dimension.size - 1) * dimension.stride;
    if (dimension.stride < extent || (dimension.stride == extent && kept == 0)) {
      kept = 0;
      run_ = whole;
    } else {
      dimension.extent = extent;
      dimensions_[kept++] = dimension;
    }
    extent = whole;
  }
  dimensions_.resize(kept);
  std::ranges::reverse(dimensions_);
  for (const Dimension& dimension : dimensions_) period_ = std::gcd(period_, dimension.stride);
  end_ = begin_ + extent;
}

// Finds the index that contains `from` in each dimension, from the outermost to the innermost. A
// position in the gap after an index counts as the start of the next index.
std::optional<MemoryRange::Run> MemoryRange::run_from(const std::byte* from) const noexcept {
  if (from >= end_) return std::nullopt;
  std::int64_t rest = std::max<std::int64_t>(from - begin_, 0);
  const std::byte* step = begin_;
  for (const Dimension& dimension : dimensions_) {
    std::int64_t index = std::min(rest / dimension.stride, dimension.size - 1);
    rest -= index * dimension.stride;
    if (rest >= dimension.extent) {
      ++index;
      rest = 0;
    }
    step += index * dimension.stride;
  }
  return Run{step + rest, step + run_};
}

bool MemoryRange::overlaps(const MemoryRange& other) const noexcept {
  if (begin_ >= other.end_ || other.begin_ >= end_) return false;
  if (is_apart_by_distance(other)) return false;
  const std::byte* from = std::max(begin_, other.begin_);
  for (int runs = 0; runs < kMaxRuns; ++runs) {
    const std::optional<Run> own = run_from(from);
    if (!own) return false;
    const std::optional<Run> next = other.run_from(own->begin);
    if (!next) return false;
    if (next->begin < own->end) return true;
    from = next->begin;
  }
  return true;
}

// Returns true only if the runs of the two ranges cannot meet. Extends both ranges to infinite
// sequences of runs with a common period: the greatest common divisor of their periods. Returns
// false if neither range has a period.
bool MemoryRange::is_apart_by_distance(const MemoryRange& other) const noexcept {
  const std::int64_t common = std::gcd(period_, other.period_);
  if (common == 0) return false;
  const std::int64_t offset = ((other.begin_ - begin_) % common + common) % common;
  return offset >= run_ && offset + other.run_ <= common;
}

}  // namespace hccl_torch
