// SPDX-License-Identifier: Apache-2.0
// Tests the allocator of message rings.

#include "node/staging_ring.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

TEST(StagingRing, AllocatesBlocksOneBehindTheOther) {
  StagingRing ring(256);
  EXPECT_EQ(ring.allocate(1), 0);
  EXPECT_EQ(ring.allocate(65), 64) << "blocks begin at multiples of 64 bytes";
  EXPECT_EQ(ring.allocate(64), 192);
  EXPECT_EQ(ring.allocate(1), std::nullopt) << "the ring is full";
}

TEST(StagingRing, RefusesBlocksLargerThanTheRing) {
  StagingRing ring(256);
  EXPECT_EQ(ring.allocate(257), std::nullopt);
  EXPECT_EQ(ring.allocate(256), 0);
}

TEST(StagingRing, WrapsAroundOnlyToFreeSpace) {
  StagingRing ring(256);
  ASSERT_EQ(ring.allocate(64), 0);
  ASSERT_EQ(ring.allocate(64), 64);
  ASSERT_EQ(ring.allocate(64), 128);
  ring.free(0);
  EXPECT_EQ(ring.allocate(128), std::nullopt) << "neither 64 bytes at the end nor at the beginning";
  EXPECT_EQ(ring.allocate(64), 192);
  EXPECT_EQ(ring.allocate(64), 0);
  EXPECT_EQ(ring.allocate(64), std::nullopt);
}

TEST(StagingRing, KeepsSpaceUntilEarlierBlocksAreFree) {
  StagingRing ring(192);
  ASSERT_EQ(ring.allocate(64), 0);
  ASSERT_EQ(ring.allocate(64), 64);
  ASSERT_EQ(ring.allocate(64), 128);
  ring.free(64);
  EXPECT_EQ(ring.allocate(64), std::nullopt);
  ring.free(0);
  EXPECT_EQ(ring.allocate(128), 0);
}

// Blocks of random sizes, freed in random order, never overlap.
TEST(StagingRing, NeverAllocatesSpaceInUse) {
  constexpr std::uint64_t kBytes = 4096;
  StagingRing ring(kBytes);
  std::mt19937 random(7);
  struct Block {
    std::uint64_t begin, end;
  };
  std::vector<Block> used;
  std::size_t allocated = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::uint64_t bytes = 1 + random() % 1500;
    if (const auto begin = ring.allocate(bytes)) {
      ++allocated;
      EXPECT_LE(*begin + bytes, kBytes);
      for (const Block& other : used)
        ASSERT_TRUE(*begin >= other.end || *begin + bytes <= other.begin) << "round " << round;
      used.push_back({*begin, *begin + bytes});
    } else {
      ASSERT_FALSE(used.empty()) << "an empty ring has room for every block of this test";
      const std::size_t freed = random() % used.size();
      ring.free(used[freed].begin);
      used.erase(used.begin() + static_cast<std::ptrdiff_t>(freed));
    }
  }
  EXPECT_GT(allocated, 5'000);
}

}  // namespace
}  // namespace hccl::node
