// SPDX-License-Identifier: Apache-2.0
// Measures the kernels of every type for hcclSum to hcclAvg, on buffers that fit in the cache and
// on buffers that do not. Also measures copies of the same number of bytes between the same
// buffers: no reduction can be faster than reading every input and writing every output once. As in
// a program, each rank's buffers are in its device's arena, which determines their offsets within
// pages.
//
// Labels are reduce/REGIME/RANKS/TYPE/OPERATION and copy/REGIME/RANKS/HOW. report.py compares them.
#include "device/arena.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace hccl {
namespace {

using reduce::StorePolicy;

constexpr std::size_t kTile = 64 << 10;  // bytes of each buffer that a kernel call processes

// One send and one receive buffer for each rank.
class Buffers {
 public:
  Buffers(std::size_t ranks, std::size_t bytes) : bytes_(bytes) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      arenas_.push_back(std::make_unique<device::Arena>(device::base_address(rank),
                                                        device::kHugePageBytes + 3 * bytes, rank));
      sources_.push_back(allocate(*arenas_.back()));
      destinations_.push_back(allocate(*arenas_.back()));
    }
  }

  std::size_t bytes() const { return bytes_; }
  std::size_t moved() const { return bytes_ * 2 * arenas_.size(); }
  std::span<const std::byte* const> sources() const { return sources_; }
  std::span<std::byte* const> destinations() const { return destinations_; }

 private:
  // Returns memory with all pages faulted in. Read as float or bfloat16, its elements are about
  // 0.5; read as half, 1.75.
  std::byte* allocate(device::Arena& arena) const {
    const device::DeviceAddress address = arena.allocate(bytes_);
    std::byte* const host = arena.view()->at(arena.file_offset(address));
    constexpr std::uint32_t kPattern = 0x3F003F00;
    for (std::size_t at = 0; at < bytes_; at += sizeof(kPattern)) {
      std::memcpy(host + at, &kPattern, sizeof(kPattern));
    }
    return host;
  }

  std::size_t bytes_;
  std::vector<std::unique_ptr<device::Arena>> arenas_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> destinations_;
};

// The part of every buffer that one call processes.
struct Tile {
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> destinations;
  std::size_t bytes;
};

std::vector<Tile> cut(const Buffers& buffers, std::size_t tile_bytes) {
  std::vector<Tile> tiles;
  for (std::size_t offset = 0; offset < buffers.bytes(); offset += tile_bytes) {
    Tile& tile = tiles.emplace_back();
    tile.bytes = std::min(tile_bytes, buffers.bytes() - offset);
    for (const std::byte* source : buffers.sources()) tile.sources.push_back(source + offset);
    for (std::byte* to : buffers.destinations()) tile.destinations.push_back(to + offset);
  }
  return tiles;
}

// The arguments of a benchmark, in this order. The benchmarks of copies have only the first two.
enum class Argument { ranks, past_cache, type, operation };

std::int64_t argument(const benchmark::State& state, Argument which) {
  return state.range(static_cast<std::size_t>(which));
}

// Returns buffers that fit in the L2 cache, or that exceed the last-level cache. The buffers are
// filled only on the first call, because filling takes longer than a measurement.
const Buffers& buffers_for(const benchmark::State& state) {
  static const Buffers cached_2(2, 32 << 10), cached_8(8, 16 << 10);
  static const Buffers past_2(2, 32 << 20), past_8(8, 16 << 20);
  const bool two = argument(state, Argument::ranks) == 2;
  if (argument(state, Argument::past_cache) != 0) return two ? past_2 : past_8;
  return two ? cached_2 : cached_8;
}

// Runs `work` on the tiles of the buffers. The label is WHAT/REGIME/RANKS/DETAIL.
template <class Work>
void for_each_tile(benchmark::State& state, const std::string& what, const std::string& detail,
                   std::size_t tile_bytes, Work work) {
  const Buffers& buffers = buffers_for(state);
  const std::vector<Tile> tiles = cut(buffers, std::min(tile_bytes, buffers.bytes()));
  while (state.KeepRunning()) {
    for (const Tile& tile : tiles) work(tile);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(buffers.moved()) * state.iterations());
  const bool past = argument(state, Argument::past_cache) != 0;
  state.SetLabel(what + (past ? "/memory/" : "/cache/") +
                 std::to_string(argument(state, Argument::ranks)) + '/' + detail);
}

void reduce_tiles(benchmark::State& state) {
  const auto type = static_cast<hcclDataType_t>(argument(state, Argument::type));
  const auto operation = static_cast<hcclRedOp_t>(argument(state, Argument::operation));
  const std::size_t element = reduce::element_size(type);
  if (element == 0 || !reduce::supports(type, operation)) {
    state.SkipWithError("no kernel");
    return;
  }
  const auto stores =
      argument(state, Argument::past_cache) != 0 ? StorePolicy::streaming : StorePolicy::cached;
  const std::string kernel =
      std::string(reduce::type_name(type)) + '/' + reduce::operation_name(operation);
  for_each_tile(state, "reduce", kernel, kTile, [&](const Tile& tile) {
    reduce_tile(type, operation, tile.sources, tile.destinations, tile.bytes / element, stores);
  });
}

// Copies every source to its own destination.
void copy_plainly(const Tile& tile) {
  for (std::size_t i = 0; i < tile.sources.size(); ++i) {
    std::memcpy(tile.destinations[i], tile.sources[i], tile.bytes);
  }
}

void copy_streaming(const Tile& tile) {
  for (std::size_t i = 0; i < tile.sources.size(); ++i) {
    reduce::copy_tile(tile.sources[i], std::span(tile.destinations).subspan(i, 1), tile.bytes,
                      StorePolicy::streaming);
  }
}

void copy_whole(benchmark::State& state) {
  for_each_tile(state, "copy", "memcpy", SIZE_MAX, copy_plainly);
}

void copy_by_tile(benchmark::State& state) {
  for_each_tile(state, "copy", "memcpy by tile", kTile, copy_plainly);
}

void stream_by_tile(benchmark::State& state) {
  for_each_tile(state, "copy", "streaming by tile", kTile, copy_streaming);
}

void kernels(benchmark::internal::Benchmark* b) {
  b->ArgNames({"ranks", "past_cache", "type", "op"})
      ->ArgsProduct({{2, 8},
                     {0, 1},
                     benchmark::CreateDenseRange(0, hcclNumTypes - 1, 1),
                     benchmark::CreateDenseRange(hcclSum, hcclAvg, 1)});
}

BENCHMARK(copy_whole)->ArgNames({"ranks", "past_cache"})->ArgsProduct({{2, 8}, {0, 1}});
BENCHMARK(copy_by_tile)->ArgNames({"ranks", "past_cache"})->ArgsProduct({{2, 8}, {1}});
BENCHMARK(stream_by_tile)->ArgNames({"ranks", "past_cache"})->ArgsProduct({{2, 8}, {1}});
BENCHMARK(reduce_tiles)->Apply(kernels);

}  // namespace
}  // namespace hccl

BENCHMARK_MAIN();
