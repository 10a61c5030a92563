// SPDX-License-Identifier: Apache-2.0
// The floor's inner loop in Highway. The loop is compiled for each vector width; the widest that
// the machine supports is chosen at run time.
#include "floor_kernel.h"

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "floor_kernel.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace peers::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::ScalableTag<float>;

HWY_ATTR void sum_element(std::span<const float* const> sources,
                          std::span<float* const> destinations, std::size_t i) {
  float sum = sources[0][i];
  for (std::size_t s = 1; s < sources.size(); ++s) sum += sources[s][i];
  for (float* destination : destinations) destination[i] = sum;
}

// Processes four vectors per step, so that whole cache lines are read and written, as write
// combining requires.
template <bool kStreaming>
HWY_ATTR std::size_t sum_steps(std::span<const float* const> sources,
                               std::span<float* const> destinations, std::size_t i,
                               std::size_t end) {
  const Lanes lanes;
  const std::size_t width = hn::Lanes(lanes);
  const auto store = [lanes](auto value, float* to) HWY_ATTR {
    if constexpr (kStreaming)
      hn::Stream(value, lanes, to);
    else
      hn::StoreU(value, lanes, to);
  };
  for (; i + 4 * width <= end; i += 4 * width) {
    const float* from = sources[0] + i;
    auto a = hn::LoadU(lanes, from);
    auto b = hn::LoadU(lanes, from + width);
    auto c = hn::LoadU(lanes, from + 2 * width);
    auto d = hn::LoadU(lanes, from + 3 * width);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      from = sources[s] + i;
      a = hn::Add(a, hn::LoadU(lanes, from));
      b = hn::Add(b, hn::LoadU(lanes, from + width));
      c = hn::Add(c, hn::LoadU(lanes, from + 2 * width));
      d = hn::Add(d, hn::LoadU(lanes, from + 3 * width));
    }
    for (float* destination : destinations) {
      float* to = destination + i;
      store(a, to);
      store(b, to + width);
      store(c, to + 2 * width);
      store(d, to + 3 * width);
    }
  }
  return i;
}

HWY_ATTR void sum_to_all(std::span<const float* const> sources,
                         std::span<float* const> destinations, std::size_t first, std::size_t count,
                         bool streaming) {
  const std::size_t end = first + count;
  std::size_t i = streaming ? sum_steps<true>(sources, destinations, first, end)
                            : sum_steps<false>(sources, destinations, first, end);
  for (; i < end; ++i) sum_element(sources, destinations, i);
  if (streaming) hwy::FlushStream();
}

}  // namespace peers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peers {

HWY_EXPORT(sum_to_all);

void sum_to_all(std::span<const float* const> sources, std::span<float* const> destinations,
                std::size_t first, std::size_t count, bool streaming) {
  HWY_DYNAMIC_DISPATCH(sum_to_all)(sources, destinations, first, count, streaming);
}

}  // namespace peers
#endif
