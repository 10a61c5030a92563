// SPDX-License-Identifier: Apache-2.0
// Tests collectives that only move data in host memory, with ranks that are threads and may read
// each other's memory: results, agreement on the path, and failures.

#include "base/text.h"
#include "host_rank.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hccl::node {
namespace {

// The buffers of one rank in calls of a collective that only moves data.
class MovedData {
 public:
  // Each rank's input is random, and depends on `rank` and `seed`.
  MovedData(Collective collective, int ranks, int rank, std::size_t block, unsigned seed)
      : ranks_(static_cast<std::size_t>(ranks)),
        rank_(static_cast<std::size_t>(rank)),
        block_(block),
        seed_(seed) {
    call_.collective = collective;
    call_.type = hcclFloat32;
    call_.operation = hcclOpNone;
    call_.count = collective == Collective::all_to_all ? block * ranks_ : block;
    call_.root = collective == Collective::broadcast ? kRoot : 0;
    sent_ = input_of(rank_, seed);
    received_.assign(block * (collective == Collective::broadcast ? 1 : ranks_), -1.0F);
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
  unsigned seed_;
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
  // If more than two ranks have a core each, broadcasts use staging buffers.
  for (const CoreCount cores : {CoreCount{8, true}, CoreCount{4, false}}) {
    for (const int size : {2, 3, 8}) {
      for (const DirectReads reads : {DirectReads::rarely, DirectReads::always}) {
        EngineRanks ranks(size, 0, {}, cores, EngineRanks::kAllRanks, reads);
        for (const std::size_t block : {1'025u, 4'096u, 40'001u}) check_moved_data(ranks, block);
      }
    }
  }
}

TEST(HostReads, CountersWrap) {
  for (const std::uint32_t first : {0x7ffffff8u, 0xfffffff8u, 0xfffffffdu}) {
    EngineRanks ranks(2, first);
    check_moved_data(ranks, 5'000);
  }
}

// Rank 1 does not permit the other ranks to read its memory. All ranks must then copy through
// staging buffers, although ranks 0 and 2 may read each other's memory.
TEST(HostReads, AllRanksTakeTheSamePath) {
  EngineRanks ranks(3, 0, {}, {8, true}, 0b101);
  check_moved_data(ranks, 100'001);
}

// Without direct reads, data is moved by HostPath. If each rank has a core, its slices use all
// parts of the staging buffer in turn, and slices of different sizes follow each other.
TEST(HostPath, SlicesOfManySizesShareTheStagingBuffer) {
  for (const int size : {2, 3, 8}) {
    EngineRanks ranks(size, 0, {}, CoreCount{8, true}, kNoCrossMemory);
    for (const std::size_t block : {1'025u, 20'000u, 2'048u, 40'001u, 8'191u, 1'026u})
      check_moved_data(ranks, block);
  }
}

TEST(HostReads, RootsThatRunAheadOverwriteNothing) {
  EngineRanks ranks(2);
  check_roots_that_run_ahead(ranks);
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

// The kernel refuses both a source and a destination that it cannot access, and says the same.
TEST(HostReads, UnwritableDestinationIsNotBlamedOnThePeer) {
  constexpr std::size_t kBytes = 40 * 4096;
  constexpr std::size_t kFlaw = kBytes / 2;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::byte* const page = static_cast<std::byte*>(memory) + kFlaw;
  EngineRanks ranks(2);
  std::string reported;
  ranks.run([&](int rank) {
    HostRank self(ranks, rank);
    MovedData data(Collective::broadcast, 2, rank, kBytes / sizeof(float), 1);
    const std::uint64_t to =
        rank == 0 ? reinterpret_cast<std::uintptr_t>(memory) : address_of(data.received());
    self.run(data.call(address_of(data.sent()), to));
    if (rank == 0) mprotect(page, 4096, PROT_READ);
    try {
      self.run(data.call(address_of(data.sent()), to));
    } catch (const Error& error) {
      EXPECT_EQ(rank, 0);
      EXPECT_EQ(error.code(), hcclInvalidArgument);
      reported = error.what();
    }
  });
  EXPECT_NE(
      reported.find(text("host address ", static_cast<const void*>(page), " cannot be written")),
      std::string::npos)
      << reported;
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace hccl::node
