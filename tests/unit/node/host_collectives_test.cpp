// SPDX-License-Identifier: Apache-2.0
// Tests collectives on host memory with ranks that are threads: on HostPath and HostChain, results
// over several slices, wrap-around of the counters, calls in which a rank uses device memory,
// mismatches and aborts; on HostReads, results, agreement on the path, and failures.

#include "engine_ranks.h"
#include "node/host_staging.h"
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

std::uint64_t address_of(const std::vector<float>& values) {
  return reinterpret_cast<std::uint64_t>(values.data());
}

// No rank uses cross-memory attach, so calls that only move data run on HostPath.
constexpr std::uint64_t kNoCrossMemory = 0;

// A rank's lane and the staging buffer of its stream.
class HostRank {
 public:
  HostRank(EngineRanks& ranks, int rank)
      : ranks_(ranks),
        rank_(rank),
        lane_(ranks.make_lane(rank)),
        staging_(ranks.arena(rank).allocate(kStagingBytes)) {}

  void run(const CollectiveCall& call) {
    HostStaging staging(ranks_.arena(rank_), staging_, call, rank_, ranks_.size());
    ranks_.engine(rank_).execute(*lane_, staging.staged_call(), nullptr, &staging);
  }
  // Waits until `rank` has counted a slice.
  void wait_until_filled(int rank) {
    lane_->attach();
    const std::atomic<std::uint32_t>& filled = lane_->slice_counters(rank).filled;
    while (filled == lane_->slices_done()) std::this_thread::yield();
  }
  void run_on_device(const CollectiveCall& call) { ranks_.engine(rank_).execute(*lane_, call); }

 private:
  EngineRanks& ranks_;
  const int rank_;
  const std::unique_ptr<Lane> lane_;
  const device::DeviceAddress staging_;
};

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
  // With a core for each rank, reductions run on HostPath. If all ranks share one core, they run on
  // HostChain.
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

// Returns the fold of all inputs in a single step.
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
  constexpr int kSize = 5;  // no power of two: averages must round
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

// Rank 0 makes a call whose slot names no staging buffer, and counts a slice of it, before the
// other ranks begin to reduce.
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

// A peer that has begun to add to an accumulator may not yet have noticed the withdrawal.
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

// A root runs ahead of the other ranks, and the root changes every five broadcasts. A root must not
// overwrite data in its staging buffer that another rank still reads.
void check_roots_that_run_ahead(EngineRanks& ranks) {
  constexpr std::size_t kCount = 90'001;
  constexpr int kRounds = 60;
  std::atomic<int> wrong{0};
  ranks.run([&](int rank) {
    HostRank self(ranks, rank);
    for (int round = 0; round < kRounds; ++round) {
      const int root = round / 5 % 3;
      std::vector<float> buffer =
          random_values(kCount, rank == root ? 100U + static_cast<unsigned>(round) : 1U);
      CollectiveCall call = all_reduce_call(kCount, address_of(buffer), address_of(buffer));
      call.collective = Collective::broadcast;
      call.operation = hcclOpNone;
      call.root = root;
      self.run(call);
      if (!same_bits(buffer, random_values(kCount, static_cast<unsigned>(100 + round)))) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(HostCollectives, RootsThatRunAheadOverwriteNothing) {
  EngineRanks staged(3, 0, {}, cores(), kNoCrossMemory);
  check_roots_that_run_ahead(staged);
  EngineRanks read(3, 0, {}, cores());
  check_roots_that_run_ahead(read);
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

// The buffers of one rank in calls of a collective that only moves data.
class MovedData {
 public:
  // Each rank's input is random, and depends on `rank` and `seed`.
  MovedData(Collective collective, int ranks, int rank, std::size_t block, unsigned seed)
      : ranks_(static_cast<std::size_t>(ranks)),
        rank_(static_cast<std::size_t>(rank)),
        block_(block) {
    call_.collective = collective;
    call_.type = hcclFloat32;
    call_.operation = hcclOpNone;
    call_.count = collective == Collective::all_to_all ? block * ranks_ : block;
    call_.root = collective == Collective::broadcast ? kRoot : 0;
    sent_ = input_of(rank_, seed);
    received_.assign(block * (collective == Collective::broadcast ? 1 : ranks_), -1.0F);
    seed_ = seed;
  }

  [[nodiscard]] std::vector<float>& sent() { return sent_; }
  [[nodiscard]] std::vector<float>& received() { return received_; }
  [[nodiscard]] CollectiveCall call(std::uint64_t send, std::uint64_t recv) const {
    CollectiveCall result = call_;
    result.send = send;
    result.recv = recv;
    return result;
  }
  [[nodiscard]] std::vector<float> expected() const {
    if (call_.collective == Collective::broadcast) return input_of(kRoot, seed_);
    std::vector<float> result;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::vector<float> input = input_of(rank, seed_);
      const std::size_t first = call_.collective == Collective::all_to_all ? rank_ * block_ : 0;
      for (std::size_t at = 0; at < block_; ++at) result.push_back(input[first + at]);
    }
    return result;
  }

 private:
  static constexpr int kRoot = 1;

  [[nodiscard]] std::vector<float> input_of(std::size_t rank, unsigned seed) const {
    const std::size_t blocks = call_.collective == Collective::all_to_all ? ranks_ : 1;
    return random_values(blocks * block_, static_cast<unsigned>(rank) * 1000 + seed);
  }

  std::size_t ranks_, rank_, block_;
  unsigned seed_ = 0;
  CollectiveCall call_;
  std::vector<float> sent_, received_;
};

constexpr std::array kMovingCollectives{Collective::broadcast, Collective::all_gather,
                                        Collective::all_to_all};

// Runs calls of every collective that only moves data. In every third call, the buffers of rank 0
// are in device memory.
void check_moved_data(EngineRanks& ranks, std::size_t block) {
  std::atomic<int> wrong{0};
  ranks.run([&](int rank) {
    HostRank self(ranks, rank);
    for (unsigned round = 0; round < 12; ++round) {
      MovedData data(kMovingCollectives[round / 2 % kMovingCollectives.size()], ranks.size(), rank,
                     block, round);
      if (rank == 0 && round % 3 == 2) {
        const std::uint64_t to = ranks.upload(rank, data.received());
        self.run_on_device(data.call(ranks.upload(rank, data.sent()), to));
        data.received() = ranks.read(rank, to, data.received().size());
      } else {
        self.run(data.call(address_of(data.sent()), address_of(data.received())));
      }
      if (!same_bits(data.received(), data.expected())) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0) << block << " floats in a block, " << ranks.size() << " ranks";
}

TEST(HostReads, MoveBlocksOfEverySize) {
  for (const int size : {2, 3, 8}) {
    EngineRanks ranks(size, 0, {}, {8, true});
    for (const std::size_t block : {1'025u, 4'096u, 40'001u}) check_moved_data(ranks, block);
  }
}

TEST(HostReads, CountersWrap) {
  for (const std::uint32_t first : {0x7ffffff8u, 0xfffffff8u, 0xfffffffdu}) {
    EngineRanks ranks(2, first);
    check_moved_data(ranks, 5'000);
  }
}

// Rank 1 does not permit the other ranks to read its memory. They then all copy through staging
// buffers, although ranks 0 and 2 have permissions.
TEST(HostReads, AllRanksTakeTheSamePath) {
  EngineRanks ranks(3, 0, {}, {8, true}, 0b101);
  check_moved_data(ranks, 100'001);
}

TEST(HostReads, InPlaceExchangesOverwriteNothingThatPeersRead) {
  constexpr std::size_t kBlock = 50'000;
  EngineRanks ranks(3);
  std::atomic<int> wrong{0};
  ranks.run([&](int rank) {
    HostRank self(ranks, rank);
    for (unsigned round = 0; round < 20; ++round) {
      MovedData data(Collective::all_to_all, 3, rank, kBlock, round);
      const std::uint64_t buffer = address_of(data.sent());
      self.run(data.call(buffer, buffer));
      if (!same_bits(data.sent(), data.expected())) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(HostReads, MismatchIsReportedToAllAndWritesNothing) {
  constexpr std::size_t kBlock = 60'000;
  EngineRanks ranks(2);
  std::atomic<int> reported{0};
  ranks.run([&](int rank) {
    HostRank self(ranks, rank);
    MovedData data(rank == 1 ? Collective::all_to_all : Collective::all_gather, 2, rank, kBlock, 1);
    const std::vector<float> before = data.received();
    try {
      self.run(data.call(address_of(data.sent()), address_of(data.received())));
    } catch (const Error& error) {
      const bool is_named =
          std::string_view(error.what()).find("rank 1 all_to_all(") != std::string_view::npos;
      reported += is_named && same_bits(data.received(), before) ? 1 : 0;
    }
  });
  EXPECT_EQ(reported, 2);
}

}  // namespace
}  // namespace hccl::node
