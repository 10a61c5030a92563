// SPDX-License-Identifier: Apache-2.0
// The reduction kernels on buffers laid out as in the library (every rank's memory in a mapping of
// its own, tiles of 64 KiB), beside plain and non-temporal copies of as many bytes: no reduction
// can be faster than reading every input and writing every output once.
//
// Rates count bytes read and written. Compare rows of one run only, with
// --benchmark_enable_random_interleaving=true --benchmark_repetitions=5.
#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl::reduce {
namespace {

constexpr std::size_t kTile = 64 << 10;
constexpr std::size_t kMostRanks = 16;

// Memory of one rank: what it sends, then what it receives.
class RankMemory {
 public:
  explicit RankMemory(std::size_t bytes) : bytes_((bytes + 4095) / 4096 * 4096) {
    const int file = memfd_create("reduce_benchmark", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(2 * bytes_)) != 0) std::abort();
    void* const address =
        mmap(nullptr, 2 * bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (address == MAP_FAILED) std::abort();
    close(file);
    base_ = static_cast<std::byte*>(address);
    // 0.5 in float, about as much in bfloat16: sums stay small in place, too.
    std::fill_n(static_cast<std::uint32_t*>(address), bytes_ / 4, 0x3F003F00u);
  }
  ~RankMemory() { munmap(base_, 2 * bytes_); }
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;

  std::byte* send() const { return base_; }
  std::byte* receive() const { return base_ + bytes_; }

 private:
  std::size_t bytes_;
  std::byte* base_;
};

// Arguments of every benchmark, in this order.
enum class Argument { from, to, bytes, in_place, streaming, type, op };

std::size_t argument(const benchmark::State& state, Argument which) {
  return static_cast<std::size_t>(state.range(static_cast<std::size_t>(which)));
}

StorePolicy policy(const benchmark::State& state) {
  return argument(state, Argument::streaming) != 0 ? StorePolicy::streaming : StorePolicy::cached;
}

// Shared by the threads of the running benchmark.
std::vector<std::unique_ptr<RankMemory>> ranks;

void make_ranks(const benchmark::State& state) {
  const std::size_t count =
      std::max(argument(state, Argument::from), argument(state, Argument::to));
  for (std::size_t i = 0; i < count; ++i) {
    ranks.push_back(std::make_unique<RankMemory>(argument(state, Argument::bytes)));
  }
}

void free_ranks(const benchmark::State&) { ranks.clear(); }

class Tile {
 public:
  Tile(const benchmark::State& state, std::size_t offset)
      : source_count_(argument(state, Argument::from)),
        destination_count_(argument(state, Argument::to)),
        bytes_(std::min(kTile, argument(state, Argument::bytes) - offset)) {
    const bool in_place = argument(state, Argument::in_place) != 0;
    for (std::size_t i = 0; i < source_count_; ++i) sources_[i] = ranks[i]->send() + offset;
    for (std::size_t i = 0; i < destination_count_; ++i) {
      destinations_[i] = (in_place ? ranks[i]->send() : ranks[i]->receive()) + offset;
    }
  }

  std::span<const std::byte* const> sources() const { return {sources_.data(), source_count_}; }
  std::span<std::byte* const> destinations() const {
    return {destinations_.data(), destination_count_};
  }
  std::size_t bytes() const { return bytes_; }
  std::size_t moved() const { return bytes_ * (source_count_ + destination_count_); }

 private:
  std::array<const std::byte*, kMostRanks> sources_{};
  std::array<std::byte*, kMostRanks> destinations_{};
  std::size_t source_count_, destination_count_, bytes_;
};

// Runs this thread's share of the tiles, once per iteration.
template <class Work>
void for_each_tile(benchmark::State& state, Work work) {
  std::vector<Tile> tiles;
  std::size_t moved = 0;
  const std::size_t stride = kTile * static_cast<std::size_t>(state.threads());
  for (std::size_t offset = kTile * static_cast<std::size_t>(state.thread_index());
       offset < argument(state, Argument::bytes); offset += stride) {
    tiles.emplace_back(state, offset);
  }
  for (auto _ : state) {
    for (const Tile& tile : tiles) {
      work(tile);
      benchmark::ClobberMemory();
      moved += tile.moved();
    }
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(moved));
}

void reduce(benchmark::State& state) {
  const auto type = static_cast<hcclDataType_t>(argument(state, Argument::type));
  const auto operation = static_cast<hcclRedOp_t>(argument(state, Argument::op));
  state.SetLabel(std::string(type_name(type)) + ' ' + operation_name(operation));
  const StorePolicy stores = policy(state);
  for_each_tile(state, [&](const Tile& tile) {
    reduce_tile(type, operation, tile.sources(), tile.destinations(),
                tile.bytes() / element_size(type), stores);
  });
}

// Every rank's buffer to its own output: the floor of an all-reduce.
void copy_each(benchmark::State& state) {
  for_each_tile(state, [&](const Tile& tile) {
    for (std::size_t i = 0; i < tile.sources().size(); ++i) {
      if (policy(state) == StorePolicy::streaming) {
        copy_tile(tile.sources()[i], tile.destinations().subspan(i, 1), tile.bytes(),
                  StorePolicy::streaming);
      } else {
        std::memcpy(tile.destinations()[i], tile.sources()[i], tile.bytes());
      }
    }
  });
}

void copy_to_all(benchmark::State& state) {
  for_each_tile(state, [&](const Tile& tile) {
    copy_tile(tile.sources()[0], tile.destinations(), tile.bytes(), policy(state));
  });
}

constexpr std::int64_t operator""_KiB(unsigned long long n) {
  return static_cast<std::int64_t>(n << 10);
}

void configure(benchmark::internal::Benchmark* b) {
  b->ArgNames({"from", "to", "bytes", "in_place", "streaming", "type", "op"})
      ->Setup(make_ranks)
      ->Teardown(free_ranks)
      ->UseRealTime();
}

void reductions_of(benchmark::internal::Benchmark* b, std::int64_t type, std::int64_t rank_count) {
  for (const std::int64_t bytes : {32_KiB, 256_KiB, 2048_KiB, 16384_KiB}) {
    b->Args({rank_count, rank_count, bytes, 0, 0, type, hcclSum});
    b->Args({rank_count, rank_count, bytes, 1, 0, type, hcclSum});
    if (bytes * rank_count > 4096_KiB)
      b->Args({rank_count, rank_count, bytes, 0, 1, type, hcclSum});
  }
}

void reductions(benchmark::internal::Benchmark* b) {
  configure(b);
  for (const std::int64_t type : {hcclFloat32, hcclBfloat16}) {
    reductions_of(b, type, 2);
    reductions_of(b, type, 8);
    b->Args({8, 1, 16384_KiB, 0, 1, type, hcclSum});
    b->Args({8, 8, 256_KiB, 0, 0, type, hcclMax});
  }
  b->Args({8, 8, 256_KiB, 0, 0, hcclInt32, hcclSum});
}

void copies(benchmark::internal::Benchmark* b) {
  configure(b);
  for (const std::int64_t count : {2, 8}) {
    for (const std::int64_t bytes : {32_KiB, 256_KiB, 2048_KiB, 16384_KiB}) {
      for (const std::int64_t streaming : {0, 1}) {
        b->Args({count, count, bytes, 0, streaming, 0, 0});
      }
    }
  }
}

void broadcasts(benchmark::internal::Benchmark* b) {
  configure(b);
  for (const std::int64_t bytes : {32_KiB, 256_KiB, 16384_KiB}) {
    for (const std::int64_t streaming : {0, 1}) b->Args({1, 8, bytes, 0, streaming, 0, 0});
  }
}

void small_reductions(benchmark::internal::Benchmark* b) {
  configure(b);
  for (const std::int64_t count : {2, 8}) {
    for (const std::int64_t bytes : {4, 8, 64, 508, 4096}) {
      b->Args({count, count, bytes, 0, 0, hcclFloat32, hcclSum});
    }
  }
}

BENCHMARK(reduce)->Name("small_reduce")->Apply(small_reductions);
BENCHMARK(copy_each)->Apply(copies)->Threads(1)->Threads(2);
BENCHMARK(reduce)->Apply(reductions)->Threads(1)->Threads(2);
BENCHMARK(copy_to_all)->Apply(broadcasts)->Threads(1)->Threads(2);

}  // namespace
}  // namespace hccl::reduce

BENCHMARK_MAIN();
