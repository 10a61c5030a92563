// SPDX-License-Identifier: Apache-2.0
// The arithmetic of each data type and reduction on SIMD vectors. Compiled once per instruction
// set; a single lane uses the same code as a full vector, so a tail cannot differ from a body.
#if defined(HCCL_REDUCE_ARITHMETIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HCCL_REDUCE_ARITHMETIC_INL_H_
#undef HCCL_REDUCE_ARITHMETIC_INL_H_
#else
#define HCCL_REDUCE_ARITHMETIC_INL_H_
#endif

#include "hwy/highway.h"

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// All buffers are read and written as vectors of 32-bit words: one float, one int32, or two
// bfloat16.
template <class D>
using Words = hn::VFromD<D>;

// Every result that is not a number becomes this one. Which payload survives an addition depends on
// the order of the operands, which compilers and instruction sets choose freely; without it, equal
// inputs would give unequal bits.
inline constexpr std::uint32_t kCanonicalNaN = 0x7FC00000;

template <class D>
using FloatTag = hn::Rebind<float, D>;

template <class D>
HWY_INLINE Words<D> canonicalize(D d, hn::VFromD<FloatTag<D>> value,
                                 hn::VFromD<FloatTag<D>> maybe_nan) {
  const auto is_nan = hn::RebindMask(d, hn::IsNaN(maybe_nan));
  return hn::IfThenElse(is_nan, hn::Set(d, kCanonicalNaN), hn::BitCast(d, value));
}

// How floats fold, as bits of a float and as a running value. kVectors is the number of registers
// one accumulator takes.
struct FloatSum {
  static constexpr std::size_t kElementBytes = 4;
  static constexpr std::size_t kVectors = 1;

  template <class D>
  struct Accumulator {
    hn::VFromD<FloatTag<D>> sum;
  };

  template <class D>
  static HWY_INLINE Accumulator<D> first(D, Words<D> bits) {
    return {hn::BitCast(FloatTag<D>(), bits)};
  }
  template <class D>
  static HWY_INLINE void next(D, Accumulator<D>& accumulator, Words<D> bits) {
    accumulator.sum = hn::Add(accumulator.sum, hn::BitCast(FloatTag<D>(), bits));
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Accumulator<D>& accumulator) {
    return canonicalize(d, accumulator.sum, accumulator.sum);
  }
};

// Minimum (kMaximum: maximum) with -0 < +0 and any NaN giving a NaN. Instruction sets disagree on
// both zeros and NaN, so neither is left to them: taking the extremum in both operand orders leaves
// two results that differ at most in the sign of a zero, which `or` (for the maximum `and`) then
// decides; NaN is tracked apart.
template <bool kMaximum>
struct FloatExtremum {
  static constexpr std::size_t kElementBytes = 4;
  static constexpr std::size_t kVectors = 2;

  template <class D>
  struct Accumulator {
    hn::VFromD<FloatTag<D>> extremum;
    hn::VFromD<FloatTag<D>> nan;  // NaN once any operand was
  };

  template <class D>
  static HWY_INLINE Accumulator<D> first(D, Words<D> bits) {
    const auto value = hn::BitCast(FloatTag<D>(), bits);
    return {value, value};
  }
  template <class D>
  static HWY_INLINE void next(D d, Accumulator<D>& accumulator, Words<D> bits) {
    const auto value = hn::BitCast(FloatTag<D>(), bits);
    accumulator.nan = hn::IfThenElse(hn::IsNaN(value), value, accumulator.nan);
    accumulator.extremum = pick(d, accumulator.extremum, value);
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Accumulator<D>& accumulator) {
    return canonicalize(d, accumulator.extremum, accumulator.nan);
  }

 private:
  template <class D, class V>
  static HWY_INLINE V pick(D, V a, V b) {
    if constexpr (kMaximum) {
      return hn::And(hn::Max(a, b), hn::Max(b, a));
    } else {
      return hn::Or(hn::Min(a, b), hn::Min(b, a));
    }
  }
};

using FloatMin = FloatExtremum<false>;
using FloatMax = FloatExtremum<true>;

// Two bfloat16 in each word, folded as floats with FloatFold and rounded once, to nearest even, at
// the end.
template <class FloatFold>
struct Bfloat16 {
  static constexpr std::size_t kElementBytes = 2;
  static constexpr std::size_t kVectors = 2 * FloatFold::kVectors;
  static constexpr std::uint32_t kHighHalf = 0xFFFF0000;

  template <class D>
  struct Accumulator {
    typename FloatFold::template Accumulator<D> low, high;
  };

  template <class D>
  static HWY_INLINE Accumulator<D> first(D d, Words<D> bits) {
    return {FloatFold::first(d, hn::ShiftLeft<16>(bits)),
            FloatFold::first(d, hn::And(bits, hn::Set(d, kHighHalf)))};
  }
  template <class D>
  static HWY_INLINE void next(D d, Accumulator<D>& accumulator, Words<D> bits) {
    FloatFold::next(d, accumulator.low, hn::ShiftLeft<16>(bits));
    FloatFold::next(d, accumulator.high, hn::And(bits, hn::Set(d, kHighHalf)));
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Accumulator<D>& accumulator) {
    const auto low = hn::ShiftRight<16>(round(d, FloatFold::finish(d, accumulator.low)));
    const auto high = round(d, FloatFold::finish(d, accumulator.high));
    return hn::Or(low, hn::And(high, hn::Set(d, kHighHalf)));
  }

 private:
  // Adds half of the last kept place, minus one unless that place is odd. Neither an infinity nor
  // the canonical NaN changes; a finite value past the largest becomes infinite, as it must.
  template <class D>
  static HWY_INLINE Words<D> round(D d, Words<D> bits) {
    const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
    return hn::Add(bits, hn::Add(is_odd, hn::Set(d, 0x7FFFu)));
  }
};

// Integers. The sum is taken unsigned, where wrapping is defined.
struct Int32Sum {
  static constexpr std::size_t kElementBytes = 4;
  static constexpr std::size_t kVectors = 1;

  template <class D>
  using Accumulator = Words<D>;

  template <class D>
  static HWY_INLINE Words<D> first(D, Words<D> bits) {
    return bits;
  }
  template <class D>
  static HWY_INLINE void next(D, Words<D>& accumulator, Words<D> bits) {
    accumulator = hn::Add(accumulator, bits);
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D, Words<D> accumulator) {
    return accumulator;
  }
};

template <bool kMaximum>
struct Int32Extremum : Int32Sum {
  template <class D>
  static HWY_INLINE void next(D d, Words<D>& accumulator, Words<D> bits) {
    const hn::Rebind<std::int32_t, D> signed_tag;
    const auto a = hn::BitCast(signed_tag, accumulator);
    const auto b = hn::BitCast(signed_tag, bits);
    accumulator = hn::BitCast(d, kMaximum ? hn::Max(a, b) : hn::Min(a, b));
  }
};

using Int32Min = Int32Extremum<false>;
using Int32Max = Int32Extremum<true>;

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
