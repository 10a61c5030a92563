// SPDX-License-Identifier: Apache-2.0
// Tests collectives on host memory with ranks that are threads, on both paths, HostPath and
// HostChain. Covers results over several slices, wrap-around of the counters, calls in which a rank
// uses device memory, mismatches and aborts.

#include "host_rank.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

// No rank uses cross-memory attach, so calls that only move data run on HostPath.
constexpr std::uint64_t kNoCrossMemory = 0;

std::vector<std::vector<float>> random_inputs(int ranks, std::size_t count) {
  std::vector<std::vector<float>> inputs;
  inputs.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    inputs.push_back(random_values(count, static_cast<unsigned>(rank) + 1));
  return inputs;
}

// Runs `rounds` all-reduces of `count` floats, every second one in place. In every third one, the
// buffers of rank 0 are in device memory.
void check_all_reduces_on_host(EngineRanks& ranks, std::size_t count, int rounds) {
  const auto inputs = random_inputs(ranks.size(), count);
  const std::vector<float> expected = sum_in_rank_order(inputs);
  std::atomic<int> wrong{0};
  ranks.run([&](int rank) {
    HostRank self(ranks, rank);
    for (int round = 0; round < rounds; ++round) {
      std::vector<float> send = inputs[static_cast<std::size_t>(rank)];
      std::vector<float> recv(count, -1.0F);
      const bool in_place = round % 2 == 1;
      if (rank == 0 && round % 3 == 2) {
        const std::uint64_t from = ranks.upload(rank, send);
        const std::uint64_t to = in_place ? from : ranks.upload(rank, recv);
        self.run_on_device(all_reduce_call(count, from, to));
        recv = ranks.read(rank, to, count);
      } else {
        self.run(all_reduce_call(count, address_of(send), address_of(in_place ? send : recv)));
        if (in_place) recv = send;
      }
      if (!same_bits(recv, expected)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0) << count;
}

class HostCollectives : public testing::TestWithParam<bool> {
 protected:
  // Reductions run on HostPath if each rank has a core, and on HostChain if all ranks share one.
  [[nodiscard]] static CoreCount cores() { return GetParam() ? CoreCount{8, true} : CoreCount{1}; }
};

INSTANTIATE_TEST_SUITE_P(Cores, HostCollectives, testing::Bool(), [](const auto& parameter) {
  return parameter.param ? "OneForEachRank" : "Shared";
});

TEST_P(HostCollectives, AllReducesOfEverySizeSumInRankOrder) {
  for (const int size : {2, 3, 8}) {
    EngineRanks ranks(size, 0, {}, cores());
    for (const std::size_t count : {261u, 1025u, 40'000u, 300'001u})
      check_all_reduces_on_host(ranks, count, 6);
  }
}

TEST_P(HostCollectives, CountersWrap) {
  for (const std::uint32_t first : {0x7ffffff8u, 0xfffffff8u, 0xfffffffdu}) {
    EngineRanks ranks(3, first, {}, cores());
    check_all_reduces_on_host(ranks, 5'000, 20);
  }
}

// Returns `ranks` inputs of random bits, which include infinities and NaNs.
std::vector<std::vector<std::byte>> random_bits(int ranks, std::size_t bytes,
                                                std::mt19937& random) {
  std::vector<std::vector<std::byte>> inputs(static_cast<std::size_t>(ranks));
  for (std::vector<std::byte>& input : inputs) {
    input.resize(bytes);
    for (std::byte& byte : input) byte = static_cast<std::byte>(random());
  }
  return inputs;
}

// Folds all inputs in a single step.
std::vector<std::byte> folded(const std::vector<std::vector<std::byte>>& inputs,
                              hcclDataType_t type, hcclRedOp_t operation) {
  std::vector<std::byte> result(inputs[0].size());
  std::vector<const std::byte*> sources;
  sources.reserve(inputs.size());
  for (const std::vector<std::byte>& input : inputs) sources.push_back(input.data());
  std::byte* const to = result.data();
  reduce::reduce_tile(type, operation, sources, {&to, 1}, reduce::elements_in(type, result.size()),
                      reduce::StorePolicy::cached);
  return result;
}

TEST_P(HostCollectives, ReductionsOfEveryTypeAndOperationEqualAFoldInOneStep) {
  constexpr int kSize = 5;  // not a power of two: averages must round
  constexpr std::size_t kBytes = std::size_t{kSize} * 40'000;  // more than an accumulator holds
  std::mt19937 random(1);
  EngineRanks ranks(kSize, 0, {}, cores());
  std::vector<std::unique_ptr<HostRank>> hosts;
  hosts.reserve(kSize);
  for (int rank = 0; rank < kSize; ++rank) hosts.push_back(std::make_unique<HostRank>(ranks, rank));
  for (int type = 0; type < hcclNumTypes; ++type) {
    for (int operation = hcclSum; operation <= hcclEmulationBitXor; ++operation) {
      const auto element = static_cast<hcclDataType_t>(type);
      const auto reduction = static_cast<hcclRedOp_t>(operation);
      if (!reduce::supports(element, reduction)) continue;
      const auto inputs = random_bits(kSize, kBytes, random);
      const std::vector<std::byte> expected = folded(inputs, element, reduction);
      std::atomic<int> wrong{0};
      ranks.run([&](int rank) {
        const auto at = static_cast<std::size_t>(rank);
        std::vector<std::byte> all(kBytes), block(kBytes / kSize);
        CollectiveCall call{.collective = Collective::all_reduce,
                            .type = static_cast<std::uint8_t>(type),
                            .operation = static_cast<std::uint8_t>(operation),
                            .count = reduce::elements_in(element, kBytes),
                            .send = reinterpret_cast<std::uint64_t>(inputs[at].data()),
                            .recv = reinterpret_cast<std::uint64_t>(all.data())};
        hosts[at]->run(call);
        call.collective = Collective::reduce_scatter;
        call.count /= kSize;
        call.recv = reinterpret_cast<std::uint64_t>(block.data());
        hosts[at]->run(call);
        wrong += all == expected ? 0 : 1;
        wrong +=
            std::ranges::equal(block, std::span(expected).subspan(at * block.size(), block.size()))
                ? 0
                : 1;
      });
      EXPECT_EQ(wrong, 0) << reduce::type_name(element) << ' ' << reduce::operation_name(reduction);
    }
  }
}

TEST_P(HostCollectives, MismatchIsReportedToAllAndWritesNothing) {
  for (const std::size_t odd_count : {3u, 5'000u}) {
    EngineRanks ranks(3, 0, {}, cores());
    std::atomic<int> reported{0};
    ranks.run([&](int rank) {
      HostRank self(ranks, rank);
      const std::size_t count = rank == 1 ? odd_count : 6'000;
      const std::vector<float> send = random_values(6'000, 1);
      const std::vector<float> recv(6'000, 7.0F);
      const CollectiveCall call = all_reduce_call(count, address_of(send), address_of(recv));
      try {
        needs_staging(call, rank, 3) ? self.run(call) : self.run_on_device(call);
      } catch (const Error& error) {
        const bool is_named =
            std::string_view(error.what()).find("rank 1 all_reduce(") != std::string_view::npos;
        reported += is_named && same_bits(recv, std::vector<float>(6'000, 7.0F)) ? 1 : 0;
      }
    });
    EXPECT_EQ(reported, 3);
  }
}

// Rank 0 calls a broadcast from rank 1, and the other ranks call an all-reduce. Rank 0's slot names
// no staging buffer, and its first slice counts as filled before the other ranks begin to reduce.
TEST_P(HostCollectives, MismatchOfCollectivesLeavesDeviceMemoryUnchanged) {
  constexpr std::size_t kCount = 30'000;
  EngineRanks ranks(3, 0, {}, cores(), kNoCrossMemory);
  const std::vector<float> pattern(2'000'000, 7.0F);
  const std::uint64_t device = ranks.upload(0, pattern);
  std::atomic<int> reported{0};
  ranks.run([&](int rank) {
    HostRank self(ranks, rank);
    std::vector<float> send = random_values(kCount, 1);
    std::vector<float> recv(kCount, 7.0F);
    CollectiveCall call = all_reduce_call(kCount, address_of(send), address_of(recv));
    if (rank == 0) {
      call.collective = Collective::broadcast;
      call.operation = hcclOpNone;
      call.root = 1;
    } else {
      self.wait_until_filled(0);
    }
    try {
      self.run(call);
    } catch (const Error& error) {
      const bool is_named =
          std::string_view(error.what()).find("rank 0 broadcast(") != std::string_view::npos;
      reported += is_named && same_bits(recv, std::vector<float>(kCount, 7.0F)) ? 1 : 0;
    }
  });
  EXPECT_EQ(reported, 3);
  EXPECT_TRUE(same_bits(ranks.read(0, device, pattern.size()), pattern));
}

// During a withdrawal, the staging buffers must count as in use: a peer that has not noticed the
// withdrawal may still add to an accumulator.
TEST_P(HostCollectives, StagingIsInUseUntilAWithdrawalIsKnownToAll) {
  EngineRanks ranks(2, 0, {}, cores());
  const std::unique_ptr<Lane> lane = ranks.make_lane(0);
  lane->attach();
  EXPECT_TRUE(lane->await_release_of_staging(true));
  lane->begin_withdrawal();
  EXPECT_FALSE(lane->await_release_of_staging(true));
  lane->end_withdrawal();
  EXPECT_TRUE(lane->await_release_of_staging(true));
}

TEST_P(HostCollectives, RootsThatRunAheadOverwriteNothing) {
  EngineRanks ranks(3, 0, {}, cores(), kNoCrossMemory);
  check_roots_that_run_ahead(ranks);
}

TEST_P(HostCollectives, AbortWakesWaitersAndLeavesTheirBuffers) {
  constexpr std::size_t kCount = 2'000'000;
  EngineRanks ranks(3, 0, {}, cores());
  std::atomic<int> aborted{0};
  ranks.run([&](int rank) {
    HostRank self(ranks, rank);
    std::vector<float> buffer(kCount, 1.0F);
    const CollectiveCall call = all_reduce_call(kCount, address_of(buffer), address_of(buffer));
    try {
      for (int round = 0;; ++round) {
        if (rank == 1 && round == 3) ranks.segment(rank).fault().raise(hcclSystemError, "aborted");
        self.run(call);
      }
    } catch (const Error& error) {
      aborted += error.what() == std::string_view("aborted") ? 1 : 0;
    }
    const std::vector<float> pattern(kCount, 5.0F);
    buffer = pattern;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_TRUE(same_bits(buffer, pattern));
  });
  EXPECT_EQ(aborted, 3);
}

}  // namespace
}  // namespace hccl::node
