// SPDX-License-Identifier: Apache-2.0
// A rank of EngineRanks that runs collectives on host memory.
#pragma once

#include "engine_ranks.h"
#include "node/host_staging.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {

inline std::uint64_t address_of(const std::vector<float>& values) {
  return reinterpret_cast<std::uint64_t>(values.data());
}

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
  // Waits until `rank` has counted a slice as filled.
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

// Each rank in turn is the root of five broadcasts, and runs ahead of the other ranks. It must not
// overwrite data in its staging buffer that another rank still reads.
inline void check_roots_that_run_ahead(EngineRanks& ranks) {
  constexpr std::size_t kCount = 90'001;
  constexpr int kRounds = 60;
  std::atomic<int> wrong{0};
  ranks.run([&](int rank) {
    HostRank self(ranks, rank);
    for (int round = 0; round < kRounds; ++round) {
      const int root = round / 5 % ranks.size();
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

}  // namespace hccl::node
