// SPDX-License-Identifier: Apache-2.0
// The arithmetic of each reduction on SIMD vectors. This file is compiled once per instruction set.
// The tail of a buffer uses the same code with shorter vectors, so its results cannot differ from
// those of full vectors.
#if defined(HCCL_REDUCE_ARITHMETIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HCCL_REDUCE_ARITHMETIC_INL_H_
#undef HCCL_REDUCE_ARITHMETIC_INL_H_
#else
#define HCCL_REDUCE_ARITHMETIC_INL_H_
#endif

#include "hwy/highway.h"
#include "reduce/lanes-inl.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

// Each fold is a class with three functions. `first` makes an accumulator from the words of the
// first source. `next` folds the words of another source into the accumulator. `finish` turns the
// accumulator back into words. An accumulator is an array of kVectors Vectors. kExact: no result
// needs more bits than its operands have. Integers are summed and multiplied as unsigned, because
// only unsigned overflow is defined.
template <class T>
struct Sum {
  static constexpr std::size_t kElementBytes = sizeof(T);
  static constexpr std::size_t kVectors = 1;
  static constexpr bool kExact = false;
  template <class D>
  using Vector = Lanes<T, D>;

  template <class D>
  static HWY_INLINE void first(D, Words<D> words, Lanes<T, D>* accumulator) {
    *accumulator = hn::BitCast(LaneTag<T, D>(), words);
  }
  template <class D>
  static HWY_INLINE void next(D, Words<D> words, Lanes<T, D>* accumulator) {
    *accumulator = hn::Add(*accumulator, hn::BitCast(LaneTag<T, D>(), words));
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Lanes<T, D>* accumulator, std::size_t) {
    return to_words<T>(d, *accumulator);
  }
};

template <class T>
struct Product : Sum<T> {
  template <class D>
  static HWY_INLINE void next(D d, Words<D> words, Lanes<T, D>* accumulator) {
    if constexpr (sizeof(T) == 1) {
      *accumulator = hn::BitCast(LaneTag<T, D>(), bytes(d, hn::BitCast(d, *accumulator), words));
    } else {
      *accumulator = *accumulator * hn::BitCast(LaneTag<T, D>(), words);
    }
  }

 private:
  // Multiplies the bytes at even and at odd positions separately as 16-bit lanes, because not every
  // instruction set can multiply vectors of bytes.
  template <class D>
  static HWY_INLINE Words<D> bytes(D d, Words<D> a, Words<D> b) {
    const LaneTag<std::uint16_t, D> pairs;
    const auto left = hn::BitCast(pairs, a);
    const auto right = hn::BitCast(pairs, b);
    const auto low = hn::And(hn::Mul(left, right), hn::Set(pairs, std::uint16_t{0xFF}));
    const auto high = hn::Mul(hn::ShiftRight<8>(left), hn::ShiftRight<8>(right));
    return hn::BitCast(d, hn::Or(low, hn::ShiftLeft<8>(high)));
  }
};

// The type in which elements of type T are summed and multiplied.
template <class T>
using Summed = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                           std::type_identity<T>>::type;

// The average of n sources: the sum, multiplied by 1 / n for floats, or divided by n and truncated
// for integers.
template <class T>
struct Average : Sum<Summed<T>> {
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Lanes<Summed<T>, D>* accumulator,
                                    std::size_t sources) {
    const LaneTag<T, D> tag;
    if constexpr (std::is_floating_point_v<T>) {
      const T factor = T{1} / static_cast<T>(sources);
      return to_words<T>(d, hn::Mul(*accumulator, hn::Set(tag, factor)));
    } else if constexpr (sizeof(T) == 1) {
      return divided(d, hn::BitCast(tag, *accumulator), sources);
    } else if (std::has_single_bit(sources)) {
      return hn::BitCast(d, shifted(hn::BitCast(tag, *accumulator), std::countr_zero(sources)));
    } else {
      const auto divisor = static_cast<T>(sources);  // at most 64
      HWY_ALIGN T lanes[hn::MaxLanes(tag)];
      hn::Store(hn::BitCast(tag, *accumulator), tag, lanes);
      for (T& lane : lanes) lane = static_cast<T>(lane / divisor);
      return hn::BitCast(d, hn::Load(tag, lanes));
    }
  }

 private:
  template <class V>
  static HWY_INLINE V absolute(V value) {
    if constexpr (std::is_signed_v<T>) return hn::Abs(value);
    return value;
  }

  // Divides by 2^bits towards zero. A shift alone would round negative values down.
  template <class V>
  static HWY_INLINE V shifted(V value, int bits) {
    if constexpr (std::is_signed_v<T>) {
      const hn::DFromV<V> tag;
      const auto below = hn::Set(tag, static_cast<T>((T{1} << bits) - 1));
      value = hn::Add(value, hn::And(hn::BroadcastSignBit(value), below));
    }
    return hn::ShiftRightSame(value, bits);
  }

  // Divides bytes by n: multiplies by 2^16 / n, rounded up, and keeps the upper half of the
  // product. The quotient is exact for bytes and n from 2 to 256, because the error is less than
  // 1 / n.
  template <class D, class V>
  static HWY_INLINE Words<D> divided(D d, V value, std::size_t n) {
    const LaneTag<T, D> tag;
    const LaneTag<std::uint16_t, D> pairs;
    const auto magnitude = hn::BitCast(pairs, absolute(value));
    const auto reciprocal = hn::Set(pairs, static_cast<std::uint16_t>((65535 + n) / n));
    const auto low =
        hn::MulHigh(hn::And(magnitude, hn::Set(pairs, std::uint16_t{0xFF})), reciprocal);
    const auto high = hn::MulHigh(hn::ShiftRight<8>(magnitude), reciprocal);
    const auto quotient = hn::BitCast(tag, hn::Or(low, hn::ShiftLeft<8>(high)));
    if constexpr (std::is_signed_v<T>) {
      return hn::BitCast(d,
                         hn::IfThenElse(hn::Lt(value, hn::Zero(tag)), hn::Neg(quotient), quotient));
    } else {
      return hn::BitCast(d, quotient);
    }
  }
};

template <class T, bool kMaximum>
struct IntegerExtremum : Sum<T> {
  static constexpr bool kExact = true;
  template <class D>
  static HWY_INLINE void next(D, Words<D> words, Lanes<T, D>* accumulator) {
    const auto value = hn::BitCast(LaneTag<T, D>(), words);
    *accumulator = kMaximum ? hn::Max(*accumulator, value) : hn::Min(*accumulator, value);
  }
};

// The minimum, with -0 < +0, and NaN if any operand is a NaN. Not every processor has an
// instruction for this. The bitwise or of smaller(a, b) and smaller(b, a) gives this minimum: the
// two results differ only in the sign of a zero, or because at least one of them is a NaN. (If `a`
// or `b` is a NaN, smaller() must return a NaN for at least one order of the operands.) The maximum
// is the negated minimum of the negated operands.
template <class T, bool kMaximum>
struct FloatExtremum : Sum<T> {
  static constexpr bool kExact = true;

  template <class D>
  static HWY_INLINE void first(D, Words<D> words, Lanes<T, D>* accumulator) {
    *accumulator = negated_for_maximum(hn::BitCast(LaneTag<T, D>(), words));
  }
  template <class D>
  static HWY_INLINE void next(D, Words<D> words, Lanes<T, D>* accumulator) {
    const auto value = negated_for_maximum(hn::BitCast(LaneTag<T, D>(), words));
    *accumulator = hn::Or(smaller(*accumulator, value), smaller(value, *accumulator));
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D d, const Lanes<T, D>* accumulator, std::size_t) {
    return to_words<T>(d, negated_for_maximum(*accumulator));
  }

 private:
  template <class V>
  static HWY_INLINE V negated_for_maximum(V value) {
    return kMaximum ? hn::Neg(value) : value;
  }
  template <class V>
  static HWY_INLINE V smaller(V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    return hn::Min(a, b);  // returns the second operand if either is a NaN
#else
    return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
  }
};

// Bitwise folds ignore element boundaries, so one kernel serves every integer type.
struct BitAnd {
  static constexpr std::size_t kElementBytes = 1;
  static constexpr std::size_t kVectors = 1;
  template <class D>
  using Vector = Words<D>;

  template <class D>
  static HWY_INLINE void first(D, Words<D> words, Words<D>* accumulator) {
    *accumulator = words;
  }
  template <class D>
  static HWY_INLINE void next(D, Words<D> words, Words<D>* accumulator) {
    *accumulator = hn::And(*accumulator, words);
  }
  template <class D>
  static HWY_INLINE Words<D> finish(D, const Words<D>* accumulator, std::size_t) {
    return *accumulator;
  }
};

struct BitOr : BitAnd {
  template <class D>
  static HWY_INLINE void next(D, Words<D> words, Words<D>* accumulator) {
    *accumulator = hn::Or(*accumulator, words);
  }
};

struct BitXor : BitAnd {
  template <class D>
  static HWY_INLINE void next(D, Words<D> words, Words<D>* accumulator) {
    *accumulator = hn::Xor(*accumulator, words);
  }
};

template <class T>
using Minimum = std::conditional_t<std::is_floating_point_v<T>, FloatExtremum<T, false>,
                                   IntegerExtremum<T, false>>;
template <class T>
using Maximum = std::conditional_t<std::is_floating_point_v<T>, FloatExtremum<T, true>,
                                   IntegerExtremum<T, true>>;

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
