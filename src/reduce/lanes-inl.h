// SPDX-License-Identifier: Apache-2.0
// The kernels read buffers as vectors of 32-bit words. A word holds one element, part of one, or
// several. This file is compiled once per instruction set.
#if defined(HCCL_REDUCE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HCCL_REDUCE_LANES_INL_H_
#undef HCCL_REDUCE_LANES_INL_H_
#else
#define HCCL_REDUCE_LANES_INL_H_
#endif

#include "hwy/highway.h"

#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Words = hn::VFromD<D>;

// The tag of a vector that is reinterpreted as lanes of T.
template <class T, class D>
using LaneTag = hn::Repartition<T, D>;

template <class T, class D>
using Lanes = hn::VFromD<LaneTag<T, D>>;

// Every NaN result becomes this canonical NaN. Compilers and instruction sets choose the order of
// operands freely, and the order decides which NaN payload survives an addition. So without a
// canonical NaN, equal inputs could give different bits.
template <class T>
inline constexpr auto kCanonicalNaN = std::uint32_t{0x7FC00000};
template <>
inline constexpr auto kCanonicalNaN<double> = std::uint64_t{0x7FF8000000000000};

template <class T, class D>
HWY_INLINE Words<D> to_words(D d, Lanes<T, D> lanes) {
  if constexpr (std::is_floating_point_v<T>) {
    const LaneTag<T, D> tag;
    const hn::RebindToUnsigned<LaneTag<T, D>> bits;
    const auto nan = hn::BitCast(tag, hn::Set(bits, kCanonicalNaN<T>));
    return hn::BitCast(d, hn::IfThenElse(hn::IsNaN(lanes), nan, lanes));
  } else {
    return hn::BitCast(d, lanes);
  }
}

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
