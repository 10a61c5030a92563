// SPDX-License-Identifier: Apache-2.0
// The measurement shared by the programs of the comparison on new buffers (cold.py): all-reduces
// that use many pairs of buffers in turn.
#pragma once

#include "addresses.h"
#include "memory_use.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace peers {

struct Walk {
  std::size_t pairs = 1;  // each pair consists of an input and an output
  std::size_t bytes = 0;  // size of each buffer
  std::size_t rounds = 1;
  // If true, the buffers of a call are allocated just before the call and freed after it.
  bool reallocates = false;
};

// One rank of the library that the walk measures. All ranks must make the same calls. On failure,
// implementations throw a std::exception.
class WalkLibrary {
 public:
  struct Pair {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
  };

  WalkLibrary() = default;
  virtual ~WalkLibrary() = default;
  WalkLibrary(const WalkLibrary&) = delete;
  WalkLibrary& operator=(const WalkLibrary&) = delete;

  // Allocates a pair and writes its input, but not its output.
  [[nodiscard]] virtual Pair allocate(std::span<const float> input) = 0;
  virtual void release(const Pair& pair) = 0;
  virtual void all_reduce(const Pair& pair, std::size_t count) = 0;
  // Blocks until this rank's calls are complete.
  virtual void finish_calls() = 0;
  // Blocks until all ranks have called barrier().
  virtual void barrier() = 0;
  [[nodiscard]] virtual std::vector<float> read(std::uint64_t buffer, std::size_t count) = 0;
};

// Buffers in ordinary host memory. Does not write to them.
class HostBuffers {
 public:
  [[nodiscard]] std::uint64_t allocate(std::size_t bytes) {
    auto buffer = std::make_unique_for_overwrite<std::byte[]>(bytes);
    const std::uint64_t begin = address(buffer.get());
    buffers_.emplace(begin, std::move(buffer));
    return begin;
  }
  void release(std::uint64_t begin) { buffers_.erase(begin); }

 private:
  std::map<std::uint64_t, std::unique_ptr<std::byte[]>> buffers_;
};

// Makes a call with each pair. Returns the microseconds until all of them are complete.
inline double time_calls(WalkLibrary& library, std::span<const WalkLibrary::Pair> pairs,
                         std::size_t count) {
  library.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (const WalkLibrary::Pair& pair : pairs) library.all_reduce(pair, count);
  library.finish_calls();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  library.barrier();  // a rank that went on would slow down ranks that are still measuring
  return time.count();
}

// Returns the sum of the memory that the processes of all ranks use now.
inline MemoryUse memory_of_all(WalkLibrary& library) {
  const MemoryUse mine = memory_in_use();
  const std::array<float, 2> numbers{mine.pages, mine.page_tables};
  const WalkLibrary::Pair pair = library.allocate(numbers);
  library.all_reduce(pair, numbers.size());
  library.finish_calls();
  const std::vector<float> sums = library.read(pair.output, numbers.size());
  library.release(pair);
  return {sums[0], sums[1]};
}

struct WalkResult {
  std::vector<double> times;  // microseconds per call in each round
  MemoryUse memory;           // after the last round; not measured if the walk reallocates
};

inline WalkResult walk(WalkLibrary& library, const Walk& plan, std::span<const float> input) {
  WalkResult result;
  std::vector<double>& times = result.times;
  times.resize(plan.rounds);
  std::vector<WalkLibrary::Pair> pairs(plan.pairs);
  if (plan.reallocates) {
    for (double& time : times) {
      for (WalkLibrary::Pair& pair : pairs) {
        pair = library.allocate(input);
        time += time_calls(library, {&pair, 1}, input.size());
        library.release(pair);
      }
    }
  } else {
    for (WalkLibrary::Pair& pair : pairs) pair = library.allocate(input);
    for (double& time : times) time = time_calls(library, pairs, input.size());
    result.memory = memory_of_all(library);
    for (const WalkLibrary::Pair& pair : pairs) library.release(pair);
  }
  for (double& time : times) time /= static_cast<double>(plan.pairs);
  return result;
}

// Warms the library up with short calls, and measures a walk. Rank 0 prints each round's
// microseconds per call, all on one line. Unless the walk reallocates, rank 0 prints a second line:
// the MiB that the processes of all ranks and their page tables take up. Then makes one more call,
// and returns the number of wrong elements in its result on this rank.
inline std::uint64_t measure_walk(WalkLibrary& library, const Walk& plan, int rank, int ranks) {
  constexpr int kShortCalls = 200;
  std::vector<float> input(plan.bytes / sizeof(float));
  for (std::size_t at = 0; at < input.size(); ++at) input[at] = static_cast<float>(at % 7 + 1);
  const std::span<const float> start{input.data(), 8};
  const WalkLibrary::Pair small = library.allocate(start);
  for (int call = 0; call < kShortCalls; ++call) library.all_reduce(small, start.size());
  library.finish_calls();
  const WalkResult result = walk(library, plan, input);
  const WalkLibrary::Pair pair = library.allocate(input);
  library.all_reduce(pair, input.size());
  library.finish_calls();
  const std::vector<float> sums = library.read(pair.output, input.size());
  std::uint64_t wrong = 0;
  for (std::size_t at = 0; at < input.size(); ++at)
    wrong += sums[at] == input[at] * static_cast<float>(ranks) ? 0u : 1u;
  library.release(pair);
  library.release(small);
  if (rank == 0) {
    for (const double time : result.times) std::printf("%.1f ", time);
    std::printf("\n");
    if (!plan.reallocates)
      std::printf("%.1f %.1f\n", static_cast<double>(result.memory.pages),
                  static_cast<double>(result.memory.page_tables));
  }
  return wrong;
}

}  // namespace peers
