// SPDX-License-Identifier: Apache-2.0
// Ranks post their parts of later operations in advance. The results must be as if the operations
// ran one after the other, even if an operation depends on the previous one.
#include "engine_ranks.h"
#include "node/host_staging.h"

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

constexpr std::size_t kBuffers = 4;

// A call whose buffers are given by index. All ranks make the same calls.
struct Step {
  Collective collective = Collective::barrier;
  std::size_t count = 0;
  std::size_t send = 0, recv = 0;
  int root = -1;
};

using Memory = std::vector<std::vector<float>>;  // one rank's buffers

// Returns a program of `steps` random steps on buffers of `length` elements.
std::vector<Step> random_program(std::mt19937& random, int ranks, std::size_t steps,
                                 std::size_t length) {
  std::vector<Step> program(steps);
  const auto below = [&](std::size_t end) { return random() % end; };
  for (Step& step : program) {
    step.collective = static_cast<Collective>(1 + below(7));
    step.send = below(kBuffers);
    step.recv = below(kBuffers);
    const auto chunks = static_cast<std::size_t>(ranks);
    const bool chunked =
        step.collective == Collective::all_gather || step.collective == Collective::reduce_scatter;
    if (chunked && step.recv == step.send) step.recv = (step.send + 1) % kBuffers;
    const std::size_t most = below(4) == 0 ? length : 64;
    step.count = 1 + below(chunked ? std::max<std::size_t>(1, most / chunks) : most);
    const bool rooted =
        step.collective == Collective::broadcast || step.collective == Collective::reduce;
    if (rooted) step.root = static_cast<int>(below(chunks));
    if (step.collective == Collective::all_to_all)
      step.count = (step.count + chunks - 1) / chunks * chunks;
  }
  return program;
}

CollectiveCall call_of(const Step& step, const std::vector<std::uint64_t>& buffers) {
  CollectiveCall call = all_reduce_call(step.count, buffers[step.send], buffers[step.recv]);
  call.collective = step.collective;
  call.root = step.root;
  if (step.collective != Collective::all_reduce && step.collective != Collective::reduce_scatter &&
      step.collective != Collective::reduce)
    call.operation = hcclOpNone;
  if (step.collective == Collective::barrier) call.count = call.send = call.recv = 0;
  return call;
}

// Concatenates elements [offset, offset + count) of all inputs.
void gather(const std::vector<std::vector<float>>& inputs, std::ptrdiff_t offset,
            std::ptrdiff_t count, std::vector<float>& result) {
  auto to = result.begin();
  for (const std::vector<float>& input : inputs)
    to = std::copy_n(input.begin() + offset, count, to);
}

// Applies the step to the buffers of all ranks.
void apply(const Step& step, std::vector<Memory>& ranks) {
  std::vector<std::vector<float>> inputs;
  inputs.reserve(ranks.size());
  for (const Memory& memory : ranks) inputs.push_back(memory[step.send]);
  const std::vector<float> sum = sum_in_rank_order(inputs);
  const auto count = static_cast<std::ptrdiff_t>(step.count);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<float>& result = ranks[rank][step.recv];
    const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(rank) * count;
    switch (step.collective) {
      case Collective::barrier:
      case Collective::point_to_point:
        break;
      case Collective::all_reduce:
        std::copy_n(sum.begin(), count, result.begin());
        break;
      case Collective::reduce_scatter:
        std::copy_n(sum.begin() + offset, count, result.begin());
        break;
      case Collective::reduce:
        if (static_cast<int>(rank) == step.root) std::copy_n(sum.begin(), count, result.begin());
        break;
      case Collective::all_to_all:
        gather(inputs, offset / static_cast<std::ptrdiff_t>(ranks.size()),
               count / static_cast<std::ptrdiff_t>(ranks.size()), result);
        break;
      case Collective::broadcast:
        std::copy_n(inputs[static_cast<std::size_t>(step.root)].begin(), count, result.begin());
        break;
      case Collective::all_gather:
        gather(inputs, 0, count, result);
        break;
    }
  }
}

// Presents a program's calls from `first` to `end` as queued calls.
class RestOfProgram final : public CallLookahead {
 public:
  RestOfProgram(const std::vector<CollectiveCall>& calls, std::size_t first, std::size_t end)
      : calls_(calls), next_(first), end_(std::min(end, calls.size())) {}
  const CollectiveCall* next() override { return next_ < end_ ? &calls_[next_++] : nullptr; }
  bool has_next() const override { return next_ < end_; }

 private:
  const std::vector<CollectiveCall>& calls_;
  std::size_t next_, end_;
};

// Which buffers lie in host memory: none, all, or a random choice on each rank.
enum class BufferPlaces : std::uint8_t { device, host, mixed };

// One rank's buffers.
class RankBuffers {
 public:
  RankBuffers(EngineRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}

  void add(const std::vector<float>& values, bool on_host) {
    on_host_.push_back(on_host ? values : std::vector<float>());
    addresses_.push_back(on_host ? reinterpret_cast<std::uint64_t>(on_host_.back().data())
                                 : ranks_.upload(rank_, values));
  }
  [[nodiscard]] const std::vector<std::uint64_t>& addresses() const { return addresses_; }
  [[nodiscard]] std::vector<float> read(std::size_t buffer, std::size_t length) const {
    return on_host_[buffer].empty() ? ranks_.read(rank_, addresses_[buffer], length)
                                    : on_host_[buffer];
  }

 private:
  EngineRanks& ranks_;
  const int rank_;
  std::vector<std::vector<float>> on_host_;  // empty for device memory
  std::vector<std::uint64_t> addresses_;
};

void execute_all(EngineRanks& ranks, int rank, const std::vector<CollectiveCall>& calls,
                 unsigned seed) {
  std::mt19937 random(seed);
  const auto lane = ranks.make_lane(rank);
  const std::uint64_t staging = ranks.arena(rank).allocate(kStagingBytes);
  for (std::size_t at = 0; at < calls.size(); ++at) {
    if (random() % 32 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    RestOfProgram rest(calls, at + 1, at + 1 + random() % 40);
    if (needs_staging(calls[at], rank, ranks.size())) {
      HostStaging staged(ranks.arena(rank), staging, calls[at], rank, ranks.size());
      ranks.engine(rank).execute(*lane, staged.staged_call(), &rest, &staged);
    } else {
      ranks.engine(rank).execute(*lane, calls[at], &rest);
    }
  }
}

struct ProgramShape {
  std::size_t steps = 0;
  std::size_t length = 0;  // of a buffer, in elements; the longest eager chunk has 260
  BufferPlaces places = BufferPlaces::device;
  bool exclusive_cores = false;
};

// Runs a program on random data, and compares every buffer of every rank with the expected one.
void check_program(const std::vector<Step>& program, int size, unsigned seed,
                   std::uint32_t first_number, const ProgramShape& shape) {
  std::mt19937 random(seed);
  EngineRanks ranks(size, first_number, {}, CoreCount{2, shape.exclusive_cores});
  std::vector<Memory> expected(static_cast<std::size_t>(size));
  std::vector<RankBuffers> buffers;
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    buffers.emplace_back(ranks, static_cast<int>(rank));
    for (std::size_t buffer = 0; buffer < kBuffers; ++buffer) {
      const bool on_host = shape.places == BufferPlaces::host ||
                           (shape.places == BufferPlaces::mixed && random() % 4 != 0);
      expected[rank].push_back(random_values(shape.length, static_cast<unsigned>(random())));
      buffers[rank].add(expected[rank].back(), on_host);
    }
  }
  ranks.run([&](int rank) {
    std::vector<CollectiveCall> calls;
    calls.reserve(program.size());
    for (const Step& step : program)
      calls.push_back(call_of(step, buffers[static_cast<std::size_t>(rank)].addresses()));
    execute_all(ranks, rank, calls, seed + static_cast<unsigned>(rank));
  });
  for (const Step& step : program) apply(step, expected);
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    for (std::size_t buffer = 0; buffer < kBuffers; ++buffer) {
      EXPECT_TRUE(same_bits(buffers[rank].read(buffer, shape.length), expected[rank][buffer]))
          << size << " ranks, seed " << seed << ", rank " << rank << ", buffer " << buffer;
    }
  }
}

// Runs `programs` random programs for each of several numbers of ranks.
void check_random_programs(const ProgramShape& shape, unsigned programs = 12) {
  for (const int size : {2, 3, 8}) {
    for (unsigned seed = 1; seed <= programs; ++seed) {
      std::mt19937 random(seed);
      check_program(random_program(random, size, shape.steps, shape.length), size, seed,
                    seed % 2 == 0 ? 0 : 0xffffffffu - 90, shape);
    }
  }
}

TEST(Ahead, RandomProgramsEqualSequentialExecution) {
  check_random_programs({200, 2'048, BufferPlaces::device});
}

TEST(Ahead, RandomProgramsOnHostMemoryEqualSequentialExecution) {
  check_random_programs({200, 12'000, BufferPlaces::host});
  check_random_programs({60, 12'000, BufferPlaces::host, true});
}

TEST(Ahead, RandomProgramsOnLongHostBuffersEqualSequentialExecution) {
  check_random_programs({30, 200'000, BufferPlaces::host}, 4);
}

// If more than two ranks have a core each, calls of 4 MiB or more have larger slices than other
// calls. No call reads the previous call's result, so the first slice of each later call can be
// filled ahead of its turn.
TEST(Ahead, SlicesOfDifferentLengthsFollowEachOther) {
  std::vector<Step> program;
  for (const std::size_t count :
       {1'100'000u, 100'000u, 1'049'000u, 200'001u, 50'000u, 1'100'000u, 60'000u, 300'000u}) {
    const std::size_t send = 2 * (program.size() % 2);
    program.push_back({Collective::all_reduce, count, send, send + 1});
  }
  check_program(program, 3, 1, 0, {program.size(), 1'100'000, BufferPlaces::host, true});
}

TEST(Ahead, RandomProgramsOnMixedMemoryEqualSequentialExecution) {
  check_random_programs({100, 12'000, BufferPlaces::mixed});
}

// A rank that waits in the first of 40 calls posts its part of the next calls. Its peer must then
// be able to complete those calls alone.
TEST(Ahead, PeerCompletesOperationsPostedByWaitingRank) {
  for (const std::size_t count : {std::size_t{4}, std::size_t{2'000}}) {
    EngineRanks ranks(2);
    const std::vector<float> input = random_values(count, 3);
    std::vector<std::vector<CollectiveCall>> calls(2);
    for (int rank = 0; rank < 2; ++rank) {
      const std::uint64_t send = ranks.upload(rank, input);
      // Parts are posted in advance only if the pages of their buffers are mapped.
      for (int call = 0; call < 40; ++call) {
        const std::uint64_t recv = ranks.upload(rank, std::vector<float>(count, -1.0F));
        ranks.arena(rank).view()->populate(ranks.arena(rank).file_offset(recv),
                                           count * sizeof(float), true);
        calls[static_cast<std::size_t>(rank)].push_back(all_reduce_call(count, send, recv));
      }
      ranks.arena(rank).view()->populate(ranks.arena(rank).file_offset(send), count * sizeof(float),
                                         false);
    }
    const auto lane0 = ranks.make_lane(0);
    const auto lane1 = ranks.make_lane(1);
    lane0->attach();
    std::thread waiting([&] {
      RestOfProgram rest(calls[0], 1, 40);
      ranks.engine(0).execute(*lane0, calls[0][0], &rest);
    });
    while (!lane0->has_posted(0, kMaxAhead)) std::this_thread::yield();
    for (std::size_t call = 0; call <= kMaxAhead; ++call)
      ranks.engine(1).execute(*lane1, calls[1][call]);
    waiting.join();
    std::vector<float> sum = input;
    for (float& value : sum) value += value;
    EXPECT_EQ(ranks.read(1, calls[1][kMaxAhead].recv, count), sum);
  }
}

// Returns the fold of several ranks' values.
std::vector<float> folded(const Memory& inputs, hcclRedOp_t operation) {
  std::vector<float> result(inputs[0].size());
  std::vector<const std::byte*> sources;
  for (const std::vector<float>& input : inputs)
    sources.push_back(reinterpret_cast<const std::byte*>(input.data()));
  auto* const to = reinterpret_cast<std::byte*>(result.data());
  reduce::reduce_tile(hcclFloat32, operation, sources, {&to, 1}, result.size(),
                      reduce::StorePolicy::cached);
  return result;
}

// Returns a chain of calls, in which each call's input is the previous call's result. Two out of
// three calls are averages, so that no value overflows.
std::vector<CollectiveCall> chain_of_calls(std::size_t calls, std::size_t count,
                                           const std::array<std::uint64_t, 2>& buffers) {
  std::vector<CollectiveCall> chain;
  for (std::size_t at = 0; at < calls; ++at) {
    chain.push_back(all_reduce_call(count, buffers[at % 2], buffers[(at + 1) % 2]));
    if (at % 3 != 0) chain.back().operation = hcclAvg;
  }
  return chain;
}

// Runs a chain on one of three ranks. Rank 1 changes its buffer before it queues some of the calls.
// Returns the number of wrong results.
int run_chain(EngineRanks& ranks, int rank, std::size_t count, bool in_place) {
  constexpr std::size_t kCalls = 120;
  const auto changes = [](std::size_t call) { return call % 7 == 3 || call % 11 == 5; };
  const auto lane = ranks.make_lane(rank);
  std::vector<float> expected(count, 0.0F);
  const std::uint64_t first = ranks.upload(rank, expected);
  const std::vector<CollectiveCall> calls =
      chain_of_calls(kCalls, count, {first, in_place ? first : ranks.upload(rank, expected)});
  int wrong = 0;
  for (std::size_t at = 0; at < kCalls; ++at) {
    const std::vector<float> input_of_1 =
        changes(at) ? random_values(count, static_cast<unsigned>(at)) : expected;
    if (rank == 1) ranks.write(rank, calls[at].send, input_of_1);
    std::size_t end = at + 1;
    while (rank == 1 && end < kCalls && !changes(end)) ++end;
    RestOfProgram rest(calls, at + 1, rank == 1 ? end : kCalls);
    ranks.engine(rank).execute(*lane, calls[at], &rest);
    expected = folded({expected, input_of_1, expected}, calls[at].reduction());
    if (!same_bits(ranks.read(rank, calls[at].recv, count), expected)) ++wrong;
  }
  return wrong;
}

TEST(Ahead, ChainsOfCallsEqualSequentialExecution) {
  for (const std::size_t count : {1u, 3u, 260u}) {  // at most the longest eager chunk
    for (const bool in_place : {true, false}) {
      EngineRanks ranks(3);
      std::atomic<int> wrong{0};
      ranks.run([&](int rank) { wrong += run_chain(ranks, rank, count, in_place); });
      EXPECT_EQ(wrong, 0) << count << (in_place ? " in place" : "");
    }
  }
}

// Runs in-place calls, which are all queued in advance, until rank 0 aborts before call `at`.
// Returns true if the abort ended the calls and no other rank wrote to this rank's buffer
// afterwards.
bool run_until_aborted(EngineRanks& ranks, int rank, std::size_t at) {
  constexpr std::size_t kCount = 20'000;
  const auto lane = ranks.make_lane(rank);
  const std::uint64_t buffer = ranks.upload(rank, random_values(kCount, 1));
  const std::vector<CollectiveCall> calls(1'000, all_reduce_call(kCount, buffer, buffer));
  return is_consistent_after_abort(ranks, rank, buffer, kCount, [&] {
    for (std::size_t next = 0; next < calls.size(); ++next) {
      if (rank == 0 && next == at) ranks.segment(0).fault().raise(hcclSystemError, "aborted");
      RestOfProgram rest(calls, next + 1, calls.size());
      ranks.engine(rank).execute(*lane, calls[next], &rest);
    }
  });
}

TEST(Ahead, AbortLeavesAllRanksConsistent) {
  for (std::size_t round = 0; round < 30; ++round) {
    EngineRanks ranks(3);
    std::atomic<int> consistent{0};
    ranks.run([&](int rank) { consistent += run_until_aborted(ranks, rank, 7 * round) ? 1 : 0; });
    EXPECT_EQ(consistent, 3);
  }
}

}  // namespace
}  // namespace hccl::node
