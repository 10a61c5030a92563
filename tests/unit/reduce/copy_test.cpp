// SPDX-License-Identifier: Apache-2.0
// copy_tile: every bit pattern arrives at every destination, and not one byte beside it.
#include "reduce/reduce.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::reduce {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kMargin = 128;
constexpr std::byte kPoison{0x5A};

Bytes random_bytes(std::size_t count) {
  std::mt19937 random(99);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Copies `bytes` at a distance of `shift` to destinations at distances of their own, one of which,
// if `in_place`, is the source.
void check(std::size_t bytes, std::size_t destination_count, std::size_t shift, bool in_place,
           StorePolicy policy) {
  Bytes source = random_bytes(bytes + shift);
  const Bytes before = source;
  std::vector<Bytes> buffers(destination_count, Bytes(bytes + 2 * kMargin, kPoison));
  std::vector<std::byte*> destinations;
  for (std::size_t i = 0; i < destination_count; ++i) {
    destinations.push_back(buffers[i].data() + kMargin + (shift + i * 13) % 64);
  }
  if (in_place) destinations.back() = source.data() + shift;
  copy_tile(source.data() + shift, destinations, bytes, policy);
  ASSERT_EQ(source, before);
  for (std::size_t i = 0; i < destination_count - (in_place ? 1 : 0); ++i) {
    Bytes wanted(buffers[i].size(), kPoison);
    std::copy(source.begin() + static_cast<std::ptrdiff_t>(shift), source.end(),
              wanted.begin() + (destinations[i] - buffers[i].data()));
    ASSERT_EQ(buffers[i], wanted) << bytes << " bytes, destination " << i << " of "
                                  << destination_count << ", shift " << shift;
  }
}

void check_all_ways(std::size_t bytes, std::size_t destinations) {
  for (const std::size_t shift : {0u, 1u, 16u, 63u}) {
    for (const bool in_place : {false, true}) {
      check(bytes, destinations, shift, in_place, StorePolicy::cached);
      check(bytes, destinations, shift, in_place, StorePolicy::interleaved);
      check(bytes, destinations, shift, in_place, StorePolicy::streaming);
    }
  }
}

TEST(CopyTile, CopiesToEveryDestinationAndNowhereElse) {
  for (const std::size_t bytes : {0u, 1u, 7u, 63u, 64u, 65u, 511u, 4095u, 4096u, 4159u, 10000u,
                                  16383u, 16384u, 16449u, 65536u}) {
    for (const std::size_t destinations : {1u, 2u, 8u, 16u}) {
      check_all_ways(bytes, destinations);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(CopyTile, TakesAnyNumberOfDestinations) {
  for (const std::size_t destinations : {64u, 65u, 130u}) check_all_ways(1000, destinations);
}

}  // namespace
}  // namespace hccl::reduce
