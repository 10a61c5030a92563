// SPDX-License-Identifier: Apache-2.0
// Every reduction kernel, inside the cache and past it, beside copies of as many bytes between the
// same buffers: no reduction can be faster than reading every input and writing every output once.
// The buffers are a program's: allocated in the arena of a device for each rank, which decides
// where in a page each of them starts.
//
// Names are reduce/REGIME/RANKS/TYPE/OPERATION and copy/REGIME/RANKS/HOW. report.py compares them.
#include "device/arena.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace hccl {
namespace {

using reduce::StorePolicy;

constexpr std::size_t kTile = 64 << 10;  // what a rank claims at a time

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
  // Written, so that its pages exist: 0.5 in float, about as much in half and bfloat16.
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

// The part of every buffer that one call works on.
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

// A registered benchmark outlives the function that registered it: `buffers` must, too.
void add(const std::string& name, const Buffers& buffers, std::size_t tile_bytes,
         std::function<void(const Tile&)> work) {
  benchmark::RegisterBenchmark(
      name.c_str(), [&buffers, tile_bytes, work = std::move(work)](benchmark::State& state) {
        const std::vector<Tile> tiles = cut(buffers, tile_bytes);
        for (auto _ : state) {
          for (const Tile& tile : tiles) work(tile);
          benchmark::ClobberMemory();
        }
        state.SetBytesProcessed(static_cast<std::int64_t>(buffers.moved()) * state.iterations());
      });
}

void add_reductions(const std::string& regime, const Buffers& buffers, StorePolicy stores) {
  for (int t = 0; t < hcclNumTypes; ++t) {
    const auto type = static_cast<hcclDataType_t>(t);
    for (int o = 0; o < hcclOpNone; ++o) {
      const auto operation = static_cast<hcclRedOp_t>(o);
      if (!reduce::supports(type, operation)) continue;
      add("reduce/" + regime + '/' + reduce::type_name(type) + '/' +
              reduce::operation_name(operation),
          buffers, kTile, [=](const Tile& tile) {
            reduce_tile(type, operation, tile.sources, tile.destinations,
                        tile.bytes / reduce::element_size(type), stores);
          });
    }
  }
}

// Every source to a destination of its own.
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

void add_all(std::size_t ranks, const Buffers& cached, const Buffers& past) {
  const std::string in_cache = "cache/" + std::to_string(ranks);
  add("copy/" + in_cache + "/memcpy", cached, cached.bytes(), copy_plainly);
  add_reductions(in_cache, cached, StorePolicy::cached);

  const std::string past_cache = "memory/" + std::to_string(ranks);
  add("copy/" + past_cache + "/memcpy", past, past.bytes(), copy_plainly);
  add("copy/" + past_cache + "/memcpy by tile", past, kTile, copy_plainly);
  add("copy/" + past_cache + "/streaming by tile", past, kTile, copy_streaming);
  add_reductions(past_cache, past, StorePolicy::streaming);
}

}  // namespace
}  // namespace hccl

int main(int argc, char** argv) {
  // In the second-level cache, and several times the last level.
  const hccl::Buffers cached_2(2, 32 << 10), cached_8(8, 16 << 10);
  const hccl::Buffers past_2(2, 32 << 20), past_8(8, 16 << 20);
  hccl::add_all(2, cached_2, past_2);
  hccl::add_all(8, cached_8, past_8);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
