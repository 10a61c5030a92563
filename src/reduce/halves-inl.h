// SPDX-License-Identifier: Apache-2.0
// Folds 16-bit floating-point elements, two in each word, as floats. Rounds once, at the end, to
// nearest even. This file is compiled once per instruction set.
#if defined(HCCL_REDUCE_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HCCL_REDUCE_HALVES_INL_H_
#undef HCCL_REDUCE_HALVES_INL_H_
#else
#define HCCL_REDUCE_HALVES_INL_H_
#endif

#include "hwy/highway.h"
#include "reduce/arithmetic-inl.h"

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

// Packing::first and Packing::second convert the first and the second half of the elements to
// floats. The packing chooses which elements form the first half; Packing::pack rounds both halves
// and restores the order.
template <class Packing, class FloatFold>
struct Halves {
  static constexpr std::size_t kElementBytes = 2;
  static constexpr std::size_t kVectors = 2;
  template <class D>
  using Vector = Lanes<float, D>;

  template <class D>
  static HWY_INLINE void first(D d, Words<D> words, Lanes<float, D>* accumulator) {
    FloatFold::first(d, Packing::first(d, words), accumulator);
    FloatFold::first(d, Packing::second(d, words), accumulator + 1);
  }
  template <class D>
  static HWY_INLINE void next(D d, Words<D> words, Lanes<float, D>* accumulator) {
    FloatFold::next(d, Packing::first(d, words), accumulator);
    FloatFold::next(d, Packing::second(d, words), accumulator + 1);
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Lanes<float, D>* accumulator, std::size_t sources) {
    return Packing::template pack<FloatFold::kExact>(
        d, FloatFold::finish(d, accumulator, sources),
        FloatFold::finish(d, accumulator + 1, sources));
  }
};

struct Bfloat16Lanes {
  static constexpr std::uint32_t kHighHalf = 0xFFFF0000;

  template <class D>
  static HWY_INLINE Words<D> first(D, Words<D> words) {
    return hn::ShiftLeft<16>(words);
  }
  template <class D>
  static HWY_INLINE Words<D> second(D d, Words<D> words) {
    return hn::And(words, hn::Set(d, kHighHalf));
  }
  template <bool kExact, class D>
  static HWY_INLINE Words<D> pack(D d, Words<D> first, Words<D> second) {
    const auto low = hn::ShiftRight<16>(round<kExact>(d, first));
    return hn::Or(low, hn::And(round<kExact>(d, second), hn::Set(d, kHighHalf)));
  }

 private:
  // Rounds to the upper 16 bits, to nearest even: adds 0x8000 if the lowest of these bits is 1, and
  // 0x7FFF otherwise. Keeps infinities and the canonical NaN. Values that round beyond the largest
  // finite bfloat16 become infinities. If kExact, the values need no rounding and stay unchanged.
  template <bool kExact, class D>
  static HWY_INLINE Words<D> round(D d, Words<D> words) {
    if constexpr (kExact) {
      return words;
    } else {
      const auto is_odd = hn::And(hn::ShiftRight<16>(words), hn::Set(d, 1u));
      return hn::Add(words, hn::Add(is_odd, hn::Set(d, 0x7FFFu)));
    }
  }
};

#if HWY_TARGET != HWY_SCALAR  // a scalar target has no vectors to halve, and uses plain.h
struct Float16Lanes {
  template <class D>
  using Tag = LaneTag<hwy::float16_t, D>;
  // Splits and joins vectors as integers, because Highway cannot take the upper half of a vector of
  // float16_t on NEON.
  template <class D>
  using Bits = LaneTag<std::uint16_t, D>;

  template <class D>
  static HWY_INLINE Words<D> first(D d, Words<D> words) {
    return promoted(d, hn::LowerHalf(hn::Half<Bits<D>>(), hn::BitCast(Bits<D>(), words)));
  }
  template <class D>
  static HWY_INLINE Words<D> second(D d, Words<D> words) {
    return promoted(d, hn::UpperHalf(hn::Half<Bits<D>>(), hn::BitCast(Bits<D>(), words)));
  }
  template <bool, class D>
  static HWY_INLINE Words<D> pack(D d, Words<D> first, Words<D> second) {
    return hn::BitCast(d, hn::Combine(Bits<D>(), demoted(d, second), demoted(d, first)));
  }

 private:
  template <class D>
  static HWY_INLINE Words<D> promoted(D d, hn::VFromD<hn::Half<Bits<D>>> bits) {
    return hn::BitCast(d,
                       hn::PromoteTo(LaneTag<float, D>(), hn::BitCast(hn::Half<Tag<D>>(), bits)));
  }
  template <class D>
  static HWY_INLINE hn::VFromD<hn::Half<Bits<D>>> demoted(D, Words<D> words) {
    const auto floats = hn::BitCast(LaneTag<float, D>(), words);
    return hn::BitCast(hn::Half<Bits<D>>(), hn::DemoteTo(hn::Half<Tag<D>>(), floats));
  }
};
#endif

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
