// SPDX-License-Identifier: Apache-2.0
// Folding by vectors: long blocks into one place, short ranges into many. Compiled once per
// instruction set.
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

using FullTag = hn::ScalableTag<std::uint32_t>;
using QuarterTag = hn::CappedTag<std::uint32_t, 4>;
using SingleTag = hn::CappedTag<std::uint32_t, 1>;

template <class D>
inline constexpr std::size_t kVectorBytes = hn::MaxLanes(D()) * kWord;

inline constexpr std::size_t kFullVector = kVectorBytes<FullTag>;

// Loads and stores of bytes with no alignment. One word goes through memcpy, as the single-lane
// loads of some instruction sets read through a plain, aligned pointer.
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

// Eight registers of accumulators fit every instruction set.
template <class Fold>
inline constexpr std::size_t kUnroll = 8 / Fold::kVectors;

// Each step reads a few lines of every source before it writes anything, so `out` may be a source,
// and sources that share the sets of a cache (same offset in a page, which is the rule) are read
// once and never needed again. kSources is their number, or 0 to take it from source_count.
template <class Fold, std::size_t kSources>
HWY_INLINE void fold_sources(const std::byte* const* sources, std::size_t source_count,
                             std::size_t offset, std::size_t bytes, std::byte* out) {
  constexpr std::size_t kSteps = kUnroll<Fold>;
  static_assert(FoldKernel::kBlockUnit % (kSteps * kFullVector) == 0);
  const FullTag d;
  const std::size_t count = kSources != 0 ? kSources : source_count;
  for (std::size_t at = 0; at < bytes; at += kSteps * kFullVector) {
    typename Fold::template Accumulator<FullTag> accumulators[kSteps];
    for (std::size_t i = 0; i < kSteps; ++i) {
      accumulators[i] = Fold::first(d, load(d, sources[0] + offset + at + i * kFullVector));
    }
    for (std::size_t s = 1; s < count; ++s) {
      for (std::size_t i = 0; i < kSteps; ++i) {
        Fold::next(d, accumulators[i], load(d, sources[s] + offset + at + i * kFullVector));
      }
    }
    for (std::size_t i = 0; i < kSteps; ++i) {
      store(d, Fold::finish(d, accumulators[i]), out + at + i * kFullVector);
    }
  }
}

template <class Fold>
void fold_block(const std::byte* const* sources, std::size_t source_count, std::size_t offset,
                std::size_t bytes, std::byte* out) {
  fold_sources<Fold, 0>(sources, source_count, offset, bytes, out);
}

// One vector (of a single lane: `bytes` of a word) from all sources to all destinations.
template <class Fold, class D>
HWY_INLINE void fold_to_all(D d, const Tile& tile, std::size_t offset,
                            std::size_t bytes = kVectorBytes<D>) {
  auto accumulator = Fold::first(d, load(d, tile.sources[0] + offset, bytes));
  for (std::size_t s = 1; s < tile.source_count; ++s) {
    Fold::next(d, accumulator, load(d, tile.sources[s] + offset, bytes));
  }
  const auto words = Fold::finish(d, accumulator);
  for (std::size_t i = 0; i < tile.destination_count; ++i) {
    store(d, words, tile.destinations[i] + offset, bytes);
  }
}

// Any range, for what no block covers.
template <class Fold>
void fold_range(const Tile& tile, std::size_t offset, std::size_t end) {
  for (; end - offset >= kFullVector; offset += kFullVector) {
    fold_to_all<Fold>(FullTag(), tile, offset);
  }
  for (; end - offset >= kVectorBytes<QuarterTag>; offset += kVectorBytes<QuarterTag>) {
    fold_to_all<Fold>(QuarterTag(), tile, offset);
  }
  for (; end - offset >= kWord; offset += kWord) {
    fold_to_all<Fold>(SingleTag(), tile, offset);
  }
  if (end != offset) {
    fold_to_all<Fold>(SingleTag(), tile, offset, sizeof(std::uint16_t));
  }
}

template <class Fold>
inline constexpr FoldKernel kFoldKernel{Fold::kElementBytes, fold_block<Fold>, fold_range<Fold>};

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
