// SPDX-License-Identifier: Apache-2.0
// Compares MemoryRange with sets of bytes, for random views of random tensors.
#include "memory_range.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <vector>

#include <ATen/ATen.h>

namespace {

using hccl_torch::MemoryRange;
using Bytes = std::set<const std::byte*>;

std::mt19937 random_numbers(7);

std::int64_t pick(std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random_numbers);
}

// Returns a view of random slices of `base`, with one to three dimensions.
at::Tensor sliced(const at::Tensor& base) {
  std::vector<std::int64_t> sizes;
  std::int64_t count = 1;
  for (std::int64_t i = pick(1, 3); i > 0; --i) {
    sizes.push_back(std::min(pick(1, 9), base.numel() / count));
    count *= sizes.back();
  }
  at::Tensor view = base.narrow(0, pick(0, base.numel() - count), count).view(sizes);
  for (std::int64_t i = 0; i < view.dim(); ++i) {
    const std::int64_t first = pick(0, view.size(i) - 1);
    view = view.slice(i, first, pick(first + 1, view.size(i)), pick(1, 3));
  }
  return pick(0, 1) == 0 ? view : view.transpose(0, view.dim() - 1);
}

// Returns a view with random strides, whose elements may interleave or overlap.
at::Tensor strided(const at::Tensor& base) {
  for (;;) {
    std::vector<std::int64_t> sizes, strides;
    std::int64_t last = pick(0, base.numel() - 1);
    const std::int64_t offset = last;
    for (std::int64_t i = pick(1, 4); i > 0; --i) {
      sizes.push_back(pick(1, 5));
      strides.push_back(pick(0, 17));
      last += (sizes.back() - 1) * strides.back();
    }
    if (last < base.numel()) return base.as_strided(sizes, strides, offset);
  }
}

Bytes bytes_of(const at::Tensor& tensor) {
  Bytes bytes;
  const auto* const first = static_cast<const std::byte*>(tensor.const_data_ptr());
  const auto size = static_cast<std::int64_t>(tensor.element_size());
  for (std::int64_t element = 0; element < tensor.numel(); ++element) {
    std::int64_t rest = element, offset = 0;
    for (std::int64_t i = tensor.dim() - 1; i >= 0; --i) {
      offset += rest % tensor.size(i) * tensor.stride(i);
      rest /= tensor.size(i);
    }
    for (std::int64_t i = 0; i < size; ++i) bytes.insert(first + offset * size + i);
  }
  return bytes;
}

Bytes bytes_of(const MemoryRange& range) {
  Bytes bytes;
  for (auto run = range.run_from(range.begin()); run; run = range.run_from(run->end)) {
    for (const std::byte* byte = run->begin; byte < run->end; ++byte) bytes.insert(byte);
  }
  return bytes;
}

bool starts_in_place(const MemoryRange& range, const Bytes& bytes) {
  const std::byte* const from = range.begin() + pick(-3, range.end() - range.begin() + 2);
  const auto run = range.run_from(from);
  const auto expected = bytes.lower_bound(from);
  return run ? expected != bytes.end() && *expected == run->begin : expected == bytes.end();
}

const char* flaw_of(const at::Tensor& a, const at::Tensor& b, bool are_slices) {
  const MemoryRange first(a), second(b);
  const Bytes bytes = bytes_of(a), others = bytes_of(b), covered = bytes_of(first);
  const bool meet =
      std::ranges::any_of(bytes, [&](const std::byte* byte) { return others.contains(byte); });
  if (meet && !(first.overlaps(second) && second.overlaps(first))) return "an overlap is not seen";
  if (are_slices && !meet && (first.overlaps(second) || second.overlaps(first)))
    return "an overlap is seen where there is none";
  if (!std::ranges::includes(covered, bytes)) return "a byte is not covered";
  if (are_slices && covered != bytes) return "a byte is covered that no element lies in";
  if (!starts_in_place(first, covered)) return "a run begins elsewhere";
  return nullptr;
}

}  // namespace

int main() {
  for (int round = 0; round < 20'000; ++round) {
    const at::Tensor base = at::zeros({pick(20, 400)}, pick(0, 1) == 0 ? at::kByte : at::kInt);
    const bool are_slices = pick(0, 1) == 0;
    const at::Tensor a = are_slices ? sliced(base) : strided(base);
    const at::Tensor b = are_slices || pick(0, 1) == 0 ? sliced(base) : strided(base);
    if (const char* const flaw = flaw_of(a, b, are_slices)) {
      std::printf("round %d: %s\n", round, flaw);
      return 1;
    }
  }
  return 0;
}
