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
using Floats = hn::VFromD<FloatTag<D>>;

template <class D>
HWY_INLINE Words<D> canonicalize(D d, Words<D> words) {
  const auto is_nan = hn::RebindMask(d, hn::IsNaN(hn::BitCast(FloatTag<D>(), words)));
  return hn::IfThenElse(is_nan, hn::Set(d, kCanonicalNaN), words);
}

// How a type folds: `first` makes an accumulator of the first source's words, `next` adds another
// source's, `finish` turns it back into words. An accumulator is kVectors of Vector; kExact tells
// that no result needs more bits than the operands have.
struct FloatSum {
  static constexpr std::size_t kElementBytes = 4;
  static constexpr std::size_t kVectors = 1;
  static constexpr bool kExact = false;
  template <class D>
  using Vector = Floats<D>;

  template <class D>
  static HWY_INLINE void first(D, Words<D> words, Floats<D>* accumulator) {
    *accumulator = hn::BitCast(FloatTag<D>(), words);
  }
  template <class D>
  static HWY_INLINE void next(D, Words<D> words, Floats<D>* accumulator) {
    *accumulator = hn::Add(*accumulator, hn::BitCast(FloatTag<D>(), words));
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Floats<D>* accumulator) {
    return canonicalize(d, hn::BitCast(d, *accumulator));
  }
};

// Minimum with -0 < +0, where any NaN gives a NaN. One instruction for the smaller of two floats
// cannot say so on every processor, but two and an `or` can: with the operands in both orders, they
// differ at most in the sign of a zero, or in that one result is a NaN. (For this, the smaller of a
// NaN and a number must be a NaN in at least one order.) The maximum is the negated minimum of the
// negated operands.
template <bool kMaximum>
struct FloatExtremum {
  static constexpr std::size_t kElementBytes = 4;
  static constexpr std::size_t kVectors = 1;
  static constexpr bool kExact = true;
  template <class D>
  using Vector = Floats<D>;

  template <class D>
  static HWY_INLINE void first(D d, Words<D> words, Floats<D>* accumulator) {
    *accumulator = hn::BitCast(FloatTag<D>(), negated_for_maximum(d, words));
  }
  template <class D>
  static HWY_INLINE void next(D d, Words<D> words, Floats<D>* accumulator) {
    const auto value = hn::BitCast(FloatTag<D>(), negated_for_maximum(d, words));
    *accumulator = hn::Or(smaller(*accumulator, value), smaller(value, *accumulator));
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Floats<D>* accumulator) {
    return canonicalize(d, negated_for_maximum(d, hn::BitCast(d, *accumulator)));
  }

 private:
  template <class D>
  static HWY_INLINE Words<D> negated_for_maximum(D d, Words<D> words) {
    return kMaximum ? hn::Xor(words, hn::Set(d, 0x80000000u)) : words;
  }
  template <class V>
  static HWY_INLINE V smaller(V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    return hn::Min(a, b);  // the second operand if either is a NaN
#else
    return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
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
  template <class D>
  using Vector = Floats<D>;

  static constexpr std::uint32_t kHighHalf = 0xFFFF0000;

  template <class D>
  static HWY_INLINE void first(D d, Words<D> words, Floats<D>* accumulator) {
    FloatFold::first(d, hn::ShiftLeft<16>(words), accumulator);
    FloatFold::first(d, hn::And(words, hn::Set(d, kHighHalf)), accumulator + FloatFold::kVectors);
  }
  template <class D>
  static HWY_INLINE void next(D d, Words<D> words, Floats<D>* accumulator) {
    FloatFold::next(d, hn::ShiftLeft<16>(words), accumulator);
    FloatFold::next(d, hn::And(words, hn::Set(d, kHighHalf)), accumulator + FloatFold::kVectors);
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Floats<D>* accumulator) {
    const auto low = round(d, FloatFold::finish(d, accumulator));
    const auto high = round(d, FloatFold::finish(d, accumulator + FloatFold::kVectors));
    return hn::Or(hn::ShiftRight<16>(low), hn::And(high, hn::Set(d, kHighHalf)));
  }

 private:
  // Adds half of the last kept place, less one unless that place is odd. Neither an infinity nor
  // the canonical NaN changes; a finite value past the largest becomes infinite, as it must.
  template <class D>
  static HWY_INLINE Words<D> round(D d, Words<D> words) {
    if constexpr (FloatFold::kExact) {
      return words;
    }
    const auto is_odd = hn::And(hn::ShiftRight<16>(words), hn::Set(d, 1u));
    return hn::Add(words, hn::Add(is_odd, hn::Set(d, 0x7FFFu)));
  }
};

// Integers. The sum is taken unsigned, where wrapping is defined.
struct Int32Sum {
  static constexpr std::size_t kElementBytes = 4;
  static constexpr std::size_t kVectors = 1;
  template <class D>
  using Vector = Words<D>;

  template <class D>
  static HWY_INLINE void first(D, Words<D> words, Words<D>* accumulator) {
    *accumulator = words;
  }
  template <class D>
  static HWY_INLINE void next(D, Words<D> words, Words<D>* accumulator) {
    *accumulator = hn::Add(*accumulator, words);
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D, const Words<D>* accumulator) {
    return *accumulator;
  }
};

template <bool kMaximum>
struct Int32Extremum : Int32Sum {
  template <class D>
  static HWY_INLINE void next(D d, Words<D> words, Words<D>* accumulator) {
    const hn::Rebind<std::int32_t, D> signed_tag;
    const auto a = hn::BitCast(signed_tag, *accumulator);
    const auto b = hn::BitCast(signed_tag, words);
    *accumulator = hn::BitCast(d, kMaximum ? hn::Max(a, b) : hn::Min(a, b));
  }
};

using Int32Min = Int32Extremum<false>;
using Int32Max = Int32Extremum<true>;

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
