// SPDX-License-Identifier: Apache-2.0
// Reduces or copies a tile, either a few vectors at a time to all destinations together, or in
// blocks that bypass the cache. This file is compiled once per instruction set.
#if defined(HCCL_REDUCE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HCCL_REDUCE_TILE_INL_H_
#undef HCCL_REDUCE_TILE_INL_H_
#else
#define HCCL_REDUCE_TILE_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "reduce/fold-inl.h"
#include "reduce/kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

// Copies a multiple of 128 bytes.
HWY_INLINE void copy_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  const FullTag d;
  for (std::size_t at = 0; at < bytes; at += 2 * kLine) {
    for (std::size_t i = 0; i < 2 * kLine; i += kFullVector) {
      store(d, load(d, from + at + i), to + at + i);
    }
  }
}

// Copies whole lines to an address that is aligned to a line, bypassing the cache.
HWY_INLINE void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  const FullTag d;
  for (std::size_t at = 0; at < bytes; at += kLine) {
    for (std::size_t i = 0; i < kLine; i += kFullVector) {
      hn::Stream(load(d, from + at + i), d, reinterpret_cast<std::uint32_t*>(to + at + i));
    }
  }
}

// Returns the number of bytes to the next line boundary.
inline std::size_t bytes_to_line(const std::byte* address) {
  return -reinterpret_cast<std::uintptr_t>(address) % kLine;
}

HWY_INLINE void prefetch_lines(const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLine) {
    hwy::Prefetch(from + at);
  }
}

inline bool is_destination(const FoldOperands& operands, const std::byte* source) {
  std::byte* const* const end = operands.destinations + operands.destination_count;
  return std::any_of(operands.destinations, end, [&](const std::byte* to) { return to == source; });
}

// Prefetches the two sources of a fold, kAhead bytes ahead. With stores that bypass the cache, this
// made folds a tenth to a fifth faster; half or twice that distance made them a tenth slower.
class PairPrefetch {
 public:
  static constexpr std::size_t kAhead = 8 * FoldKernel::kBlockUnit;

  explicit PairPrefetch(const FoldOperands& operands) {
    for (std::size_t i = 0; i < 2; ++i) {
      sources_[i] = operands.sources[i];
      is_stored_[i] = is_destination(operands, sources_[i]);
    }
  }
  // Prefetches the block of each source that lies kAhead bytes after `offset`. A block that reaches
  // beyond `end` may belong to the next tile. It is never prefetched for stores, because another
  // core may be storing to that tile.
  HWY_INLINE void block_after(std::size_t offset, std::size_t end) const {
    const bool is_inside = end - offset >= kAhead + FoldKernel::kBlockUnit;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::byte* const block = sources_[i] + offset + kAhead;
      if (is_stored_[i] && is_inside) {
        prefetch_for_stores(block, FoldKernel::kBlockUnit);
      } else {
        prefetch_lines(block, FoldKernel::kBlockUnit);
      }
    }
  }

 private:
  const std::byte* sources_[2];
  bool is_stored_[2];
};

// Prefetches kBytes bytes of `next`, and stores a folded block of the same length. If `streamed`,
// the stores bypass the cache, and alternate with the prefetches line by line.
template <std::size_t kBytes>
HWY_INLINE void store_block(std::byte* to, const std::byte* block, const std::byte* next,
                            bool streamed) {
  if (streamed) {
    for (std::size_t at = 0; at < kBytes; at += kLine) {
      hwy::Prefetch(next + at);
      stream_lines(to + at, block + at, kLine);
    }
  } else {
    prefetch_lines(next, kBytes);
    copy_lines(to, block, kBytes);
  }
}

// Folds whole blocks, and returns the offset of the rest. Bypasses the cache when it stores to the
// destinations that `streamed` selects. Blocks are short, so that the processor keeps reading
// sources while it stores a block: blocks of 2 KiB lost a sixth of the bandwidth. For the same
// reason, storing a block to a destination also prefetches the next block of one source. This
// gained a tenth of the bandwidth; prefetching all sources together lost a tenth. Folds that mostly
// read store their vectors directly, because copying through a block cost a third.
inline std::size_t reduce_streaming(const FoldKernel& kernel, const FoldOperands& operands,
                                    std::size_t begin, std::size_t end, const bool* streamed) {
  constexpr std::size_t kBlock = FoldKernel::kBlockUnit;
  if (is_mostly_read(operands)) {
    const std::size_t whole = begin + (end - begin) / kBlock * kBlock;
    kernel.streamed_block(operands.sources, operands.source_count, begin, whole,
                          operands.destinations[0] + begin);
    hwy::FlushStream();
    return whole;
  }
  HWY_ALIGN std::byte block[kBlock];
  const PairPrefetch prefetch(operands);
  for (; end - begin >= kBlock; begin += kBlock) {
    if (operands.source_count == 2) {
      prefetch.block_after(begin, end);
    }
    kernel.block(operands.sources, operands.source_count, begin, begin + kBlock, block);
    for (std::size_t i = 0; i < operands.destination_count; ++i) {
      const std::byte* const next =
          i < operands.source_count ? operands.sources[i] + begin + kBlock : block;
      store_block<kBlock>(operands.destinations[i] + begin, block, next, streamed[i]);
    }
  }
  hwy::FlushStream();
  return begin;
}

// Returns whether exactly one of two sources is also a destination.
inline bool stores_to_one_source(const FoldOperands& operands) {
  bool first = false;
  bool second = false;
  for (std::size_t i = 0; i < operands.destination_count; ++i) {
    first |= operands.destinations[i] == operands.sources[0];
    second |= operands.destinations[i] == operands.sources[1];
  }
  return first != second;
}

// Folds two sources with prefetching, but leaves the last kLeft bytes or fewer to the caller.
// Returns the offset of the part that it has not folded. Folds nothing unless exactly one source is
// also a destination. When ranks on two cores added to the same accumulators in turn, prefetching
// saved a seventh of an all-reduce's time. When both sources were destinations, as in an in-place
// all-reduce of two ranks, it cost up to a fifth.
inline std::size_t reduce_pair(const FoldKernel& kernel, const FoldOperands& operands,
                               std::size_t begin, std::size_t end) {
  constexpr std::size_t kBlock = FoldKernel::kBlockUnit;
  constexpr std::size_t kLeft = PairPrefetch::kAhead + kBlock;
  if (end - begin <= kLeft) {
    return begin;
  }
  if (!stores_to_one_source(operands)) {
    return begin;
  }
  const PairPrefetch prefetch(operands);
  for (; end - begin > kLeft; begin += kBlock) {
    prefetch.block_after(begin, end);
    kernel.range(operands, begin, begin + kBlock);
  }
  return begin;
}

// Selects the destinations whose stores bypass the cache from `offset` onwards: those that are
// aligned to a line at `offset` and are not also a source. The lines of a source have just been
// read, so a plain store to them costs no further read and is cheaper. Returns whether any
// destination is selected.
inline bool choose_streamed(const FoldOperands& operands, std::size_t offset, bool* streamed) {
  const std::byte* const* const end = operands.sources + operands.source_count;
  bool any = false;
  for (std::size_t i = 0; i < operands.destination_count; ++i) {
    const std::byte* const to = operands.destinations[i];
    streamed[i] = bytes_to_line(to + offset) == 0 && std::find(operands.sources, end, to) == end;
    any = any || streamed[i];
  }
  return any;
}

inline void reduce_kernel(const FoldKernel& kernel, const FoldOperands& operands, std::size_t bytes,
                          StorePolicy policy) {
  constexpr std::size_t kMaxDestinations = 64;  // with more, all use plain stores
  bool streamed[kMaxDestinations];
  std::size_t done = 0;
  if (policy == StorePolicy::streaming && operands.destination_count <= kMaxDestinations) {
    // Fold up to the first line boundary of the first destination, if it is a whole number of
    // elements away.
    const std::size_t to_line = std::min(bytes_to_line(operands.destinations[0]), bytes);
    const std::size_t head = to_line % kernel.element_bytes == 0 ? to_line : 0;
    if (choose_streamed(operands, head, streamed)) {
      kernel.range(operands, 0, head);
      done = reduce_streaming(kernel, operands, head, bytes, streamed);
    }
  }
  if (operands.source_count == 2) {
    done = reduce_pair(kernel, operands, done, bytes);
  }
  kernel.range(operands, done, bytes);
}

// Copies to all destinations together, four lines at a time. No destination is the source. Compared
// with a memcpy of each block to each destination, this took 0.6 times as long for working sets of
// about the size of the last-level cache, and 1.1 times as long for much smaller ones.
inline void interleaved_copy_kernel(const std::byte* source, std::byte* const* destinations,
                                    std::size_t destination_count, std::size_t bytes) {
  constexpr std::size_t kStep = 4 * kLine;
  constexpr std::size_t kVectors = kStep / kFullVector;
  const FullTag d;
  const std::size_t whole = bytes - bytes % kStep;
  for (std::size_t at = 0; at < whole; at += kStep) {
    Words<FullTag> values[kVectors];
    for (std::size_t i = 0; i < kVectors; ++i) {
      values[i] = load(d, source + at + i * kFullVector);
    }
    for (std::size_t to = 0; to < destination_count; ++to) {
      std::byte* const target = destinations[to] + at;
      for (std::size_t i = 0; i < kVectors; ++i) {
        store(d, values[i], target + i * kFullVector);
      }
    }
  }
  for (std::size_t to = 0; whole != bytes && to < destination_count; ++to) {
    std::memcpy(destinations[to] + whole, source + whole, bytes - whole);
  }
}

// Copies block by block, so that every copy of a block but the first reads it from the nearest
// cache. The blocks of each destination are aligned to its lines, because a line that is stored
// partly with plain and partly with non-temporal stores would be written to memory twice.
inline void stream_copy_kernel(const std::byte* source, std::byte* const* destinations,
                               std::size_t destination_count, std::size_t bytes) {
  constexpr std::size_t kBlock = 16384;
  for (std::size_t begin = 0; begin < bytes; begin += kBlock) {
    for (std::size_t i = 0; i < destination_count; ++i) {
      std::byte* const to = destinations[i];
      if (to == source) {
        continue;
      }
      const std::size_t head = std::min(bytes_to_line(to), bytes);
      if (begin == 0) {
        std::memcpy(to, source, head);
      }
      const std::size_t from = std::min(begin + head, bytes);
      const std::size_t length = std::min(kBlock, bytes - from);
      const std::size_t lines = length - length % kLine;
      stream_lines(to + from, source + from, lines);
      if (length != lines) {
        std::memcpy(to + from + lines, source + from + lines, length - lines);
      }
    }
  }
  hwy::FlushStream();
}

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
