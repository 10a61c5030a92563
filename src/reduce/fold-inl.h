// SPDX-License-Identifier: Apache-2.0
// Folds any number of bytes: most of them with full vectors, and the tail with shorter and shorter
// vectors. This file is compiled once per instruction set.
#if defined(HCCL_REDUCE_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HCCL_REDUCE_FOLD_INL_H_
#undef HCCL_REDUCE_FOLD_INL_H_
#else
#define HCCL_REDUCE_FOLD_INL_H_
#endif

#include "hwy/highway.h"
#include "reduce/arithmetic-inl.h"
#include "reduce/kernels.h"

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

inline constexpr std::size_t kWord = sizeof(std::uint32_t);
inline constexpr std::size_t kLine = 64;

using FullTag = hn::ScalableTag<std::uint32_t>;
using QuarterTag = hn::CappedTag<std::uint32_t, 4>;
using PairTag = hn::CappedTag<std::uint32_t, 2>;
using SingleTag = hn::CappedTag<std::uint32_t, 1>;

template <class D>
inline constexpr std::size_t kVectorBytes = hn::MaxLanes(D()) * kWord;

inline constexpr std::size_t kFullVector = kVectorBytes<FullTag>;

// Load or store a vector at an unaligned address. Copy a single word, or only its first `bytes`
// bytes, with memcpy, because the single-lane loads of some instruction sets read through a plain,
// aligned pointer.
template <class D>
HWY_INLINE Words<D> load(D d, const std::byte* from, std::size_t bytes = kVectorBytes<D>) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    std::uint32_t word = 0;
    std::memcpy(&word, from, bytes);
    return hn::Set(d, word);
  } else {
    return hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(from));
  }
}

template <class D>
HWY_INLINE void store(D d, Words<D> words, std::byte* to, std::size_t bytes = kVectorBytes<D>) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    const std::uint32_t word = hn::GetLane(words);
    std::memcpy(to, &word, bytes);
  } else {
    hn::StoreU(words, d, reinterpret_cast<std::uint32_t*>(to));
  }
}

// Folds kUnrolled vectors at `offset` of every source into `results`.
template <class Fold, std::size_t kUnrolled, class D>
HWY_INLINE void fold_vectors(D d, const std::byte* const* sources, std::size_t source_count,
                             std::size_t offset, std::size_t bytes, Words<D>* results) {
  typename Fold::template Vector<D> accumulators[kUnrolled][Fold::kVectors];
  const std::byte* source = sources[0] + offset;
  for (std::size_t i = 0; i < kUnrolled; ++i) {
    Fold::first(d, load(d, source + i * kVectorBytes<D>, bytes), accumulators[i]);
  }
  for (std::size_t s = 1; s < source_count; ++s) {
    source = sources[s] + offset;
    for (std::size_t i = 0; i < kUnrolled; ++i) {
      Fold::next(d, load(d, source + i * kVectorBytes<D>, bytes), accumulators[i]);
    }
  }
  for (std::size_t i = 0; i < kUnrolled; ++i) {
    results[i] = Fold::finish(d, accumulators[i], source_count);
  }
}

// Number of vectors of each source that are folded at a time. Accumulators in eight registers fit
// every instruction set and hold at least a line of each source. Sources may start at the same
// offset in a page and then compete for the same cache sets, so each line should be fully used as
// soon as it has been read.
template <class Fold>
inline constexpr std::size_t kUnroll = 8 / Fold::kVectors;

// Number of vectors folded at a time if is_mostly_read() returns false. With data in the cache and
// vectors as long as a line, folding one vector at a time took 0.8 times as long as folding kUnroll
// at a time. Folds with several vectors per accumulator gain nothing: they are compute-bound.
template <class Fold>
inline constexpr std::size_t kScatteredUnroll = (kFullVector == kLine) && (Fold::kVectors == 1)
                                                    ? 1
                                                    : kUnroll<Fold>;

// Folds the bytes [begin, end) of every source to `out`. If kPastCache, bypasses the cache, and
// `out` must be aligned to a line.
template <class Fold, bool kPastCache>
void fold_block(const std::byte* const* sources, std::size_t source_count, std::size_t begin,
                std::size_t end, std::byte* out) {
  constexpr std::size_t kStep = kUnroll<Fold> * kFullVector;
  static_assert(FoldKernel::kBlockUnit % kStep == 0);
  const FullTag d;
  for (; begin < end; begin += kStep, out += kStep) {
    Words<FullTag> results[kUnroll<Fold>];
    fold_vectors<Fold, kUnroll<Fold>>(d, sources, source_count, begin, kFullVector, results);
    for (std::size_t i = 0; i < kUnroll<Fold>; ++i) {
      if constexpr (kPastCache) {
        hn::Stream(results[i], d, reinterpret_cast<std::uint32_t*>(out + i * kFullVector));
      } else {
        store(d, results[i], out + i * kFullVector);
      }
    }
  }
}

// Folds whole groups of kUnrolled vectors and returns the offset of the rest. Reads a group from
// every source before it writes to any destination. `bytes` is the length of a vector, or of the
// used part of a single lane.
template <class Fold, std::size_t kUnrolled, class D>
HWY_INLINE std::size_t fold_while(D d, const FoldOperands& operands, std::size_t begin,
                                  std::size_t end, std::size_t bytes = kVectorBytes<D>) {
  // Copy the operands: otherwise the compiler assumes that every store may change them, and reloads
  // them.
  const auto [sources, source_count, destinations, destination_count] = operands;
  for (; end - begin >= kUnrolled * bytes; begin += kUnrolled * bytes) {
    Words<D> results[kUnrolled];
    fold_vectors<Fold, kUnrolled>(d, sources, source_count, begin, bytes, results);
    for (std::size_t t = 0; t < destination_count; ++t) {
      std::byte* const to = destinations[t] + begin;
      for (std::size_t i = 0; i < kUnrolled; ++i) {
        store(d, results[i], to + i * bytes, bytes);
      }
    }
  }
  return begin;
}

// Returns whether the fold mostly reads. Such folds are fastest if they read several lines of a
// source at a time. With eight sources in the last-level cache or in memory, this took 0.7 times as
// long as reading one line of each source in turn. With two sources, one line at a time was faster.
inline bool is_mostly_read(const FoldOperands& operands) {
  return operands.destination_count == 1 && operands.source_count > 2;
}

template <class Fold>
void fold_range(const FoldOperands& operands, std::size_t begin, std::size_t end) {
  if (is_mostly_read(operands)) {
    begin = fold_while<Fold, kUnroll<Fold>>(FullTag(), operands, begin, end);
  } else {
    begin = fold_while<Fold, kScatteredUnroll<Fold>>(FullTag(), operands, begin, end);
  }
  begin = fold_while<Fold, 1>(FullTag(), operands, begin, end);
  begin = fold_while<Fold, 1>(QuarterTag(), operands, begin, end);
  begin = fold_while<Fold, 1>(PairTag(), operands, begin, end);
  if constexpr (Fold::kElementBytes <= kWord) {
    begin = fold_while<Fold, 1>(SingleTag(), operands, begin, end);
  }
  if constexpr (Fold::kElementBytes < kWord) {
    fold_while<Fold, 1>(SingleTag(), operands, begin, end, Fold::kElementBytes);
  }
}

template <class Fold>
inline constexpr FoldKernel kFoldKernel{Fold::kElementBytes, fold_block<Fold, false>,
                                        fold_block<Fold, true>, fold_range<Fold>};

// The kernels of a type whose elements are lanes, followed by the bitwise folds, if any.
template <class T, class... Bitwise>
inline constexpr FoldRow kLaneRow{{kFoldKernel<Sum<Summed<T>>>, kFoldKernel<Product<Summed<T>>>,
                                   kFoldKernel<Minimum<T>>, kFoldKernel<Maximum<T>>,
                                   kFoldKernel<Average<T>>, kFoldKernel<Bitwise>...}};

template <class T>
inline constexpr FoldRow kIntegerRow = kLaneRow<T, BitAnd, BitOr, BitXor>;

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
