// SPDX-License-Identifier: Apache-2.0
// Random allocations never overlap, and everything released comes back in one piece.
#include "device/address_allocator.h"

#include <random>

#include <gtest/gtest.h>

namespace hccl::device {
namespace {

TEST(AddressAllocator, RandomUse) {
  constexpr std::uint64_t kEnd = 1 << 20;
  AddressAllocator allocator(0, kEnd);
  std::mt19937 random(1);
  std::map<std::uint64_t, std::uint64_t> held;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0 || held.empty()) {
      const std::uint64_t bytes = random() % 5'000 + 1;
      const std::uint64_t alignment = 1ull << (random() % 10);
      const auto offset = allocator.allocate(bytes, alignment);
      if (!offset) continue;
      EXPECT_EQ(*offset % alignment, 0u);
      EXPECT_LE(*offset + bytes, kEnd);
      const auto next = held.lower_bound(*offset);
      if (next != held.end()) {
        ASSERT_LE(*offset + bytes, next->first);
      }
      if (next != held.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *offset);
      }
      held.emplace(*offset, bytes);
    } else {
      const auto victim = std::next(held.begin(), static_cast<long>(random() % held.size()));
      allocator.release(victim->first, victim->second);
      held.erase(victim);
    }
  }
  for (const auto& [offset, bytes] : held) allocator.release(offset, bytes);
  EXPECT_EQ(allocator.allocate(kEnd, 1), 0u);
}

}  // namespace
}  // namespace hccl::device
