// SPDX-License-Identifier: Apache-2.0
// Tests reservations in a message ring.

#include "node/staging_ring.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

using Reuse = StagingRing::Reuse;

TEST(StagingRing, ReservesSpaceFrontToBack) {
  StagingRing ring(256, Reuse::early);
  EXPECT_EQ(ring.reserve(1), 0);
  EXPECT_EQ(ring.reserve(65), 64) << "reservations begin at multiples of 64 bytes";
  EXPECT_EQ(ring.reserve(64), 192);
  EXPECT_EQ(ring.reserve(1), std::nullopt) << "the ring is full";
}

TEST(StagingRing, RefusesMoreThanTheRingHolds) {
  StagingRing ring(256, Reuse::early);
  EXPECT_EQ(ring.reserve(257), std::nullopt);
  EXPECT_EQ(ring.reserve(256), 0);
}

TEST(StagingRing, WrapsAroundOnlyToFreeSpace) {
  StagingRing ring(256, Reuse::early);
  ASSERT_EQ(ring.reserve(64), 0);
  ASSERT_EQ(ring.reserve(64), 64);
  ASSERT_EQ(ring.reserve(64), 128);
  ring.free(0);
  EXPECT_EQ(ring.reserve(128), std::nullopt) << "neither 64 bytes at the end nor at the beginning";
  EXPECT_EQ(ring.reserve(64), 192);
  EXPECT_EQ(ring.reserve(64), 0);
  EXPECT_EQ(ring.reserve(64), std::nullopt);
}

TEST(StagingRing, KeepsSpaceUntilEarlierReservationsAreFree) {
  StagingRing ring(192, Reuse::early);
  ASSERT_EQ(ring.reserve(64), 0);
  ASSERT_EQ(ring.reserve(64), 64);
  ASSERT_EQ(ring.reserve(64), 128);
  ring.free(64);
  EXPECT_EQ(ring.reserve(64), std::nullopt);
  ring.free(0);
  EXPECT_EQ(ring.reserve(128), 0);
}

TEST(StagingRing, BeginsAtTheFrontIfEmptyAndReusedEarly) {
  StagingRing ring(192, Reuse::early);
  ASSERT_EQ(ring.reserve(64), 0);
  EXPECT_FALSE(ring.advances());
  ring.free(0);
  EXPECT_EQ(ring.reserve(64), 0);
}

TEST(StagingRing, ContinuesIfEmptyAndReusedLate) {
  StagingRing ring(192, Reuse::late);
  ASSERT_EQ(ring.reserve(64), 0);
  EXPECT_TRUE(ring.advances());
  ring.free(0);
  EXPECT_EQ(ring.reserve(128), 64);
  ring.free(64);
  EXPECT_EQ(ring.reserve(64), 0) << "no space is left at the end";
  ring.free(0);
  EXPECT_EQ(ring.reserve(192), 0);
}

// Reservations of random sizes, freed in random order, must never overlap.
void check_random_reservations(Reuse reuse) {
  constexpr std::uint64_t kBytes = 4096;
  StagingRing ring(kBytes, reuse);
  std::mt19937 random(7);
  struct Range {
    std::uint64_t begin, end;
  };
  std::vector<Range> used;
  std::size_t reserved = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::uint64_t bytes = 1 + random() % 1500;
    if (const auto begin = ring.reserve(bytes)) {
      ++reserved;
      EXPECT_LE(*begin + bytes, kBytes);
      for (const Range& other : used)
        ASSERT_TRUE(*begin >= other.end || *begin + bytes <= other.begin) << "round " << round;
      used.push_back({*begin, *begin + bytes});
    } else {
      ASSERT_FALSE(used.empty()) << "an empty ring has room for every message of this test";
      const std::size_t freed = random() % used.size();
      ring.free(used[freed].begin);
      used.erase(used.begin() + static_cast<std::ptrdiff_t>(freed));
    }
  }
  EXPECT_GT(reserved, 5'000);
}

TEST(StagingRing, NeverReservesSpaceInUse) {
  check_random_reservations(Reuse::early);
  check_random_reservations(Reuse::late);
}

}  // namespace
}  // namespace hccl::node
