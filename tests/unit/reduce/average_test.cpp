// SPDX-License-Identifier: Apache-2.0
// Averages of complete sums, against the scalar reference.
#include "elements.h"
#include "reduce/reduce.h"
#include "scalar_fold.h"

#include <array>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::reduce {
namespace {

TEST(AverageTile, GivesTheBitsOfTheReference) {
  constexpr std::size_t kCount = 300;
  for (const hcclDataType_t type : test::kAllTypes) {
    const std::size_t size = element_size(type);
    for (const std::uint32_t parts : {1U, 2U, 3U, 7U, 100U}) {
      std::vector<std::byte> values(kCount * size);
      std::vector<std::byte> expected(values.size());
      for (std::size_t i = 0; i < kCount; ++i) {
        const std::uint64_t sum = test::element_word(type, test::Data::numbers, 9, 0, i);
        test::store_word(type, &values[i * size], sum);
        const std::uint64_t mean = parts == 1 ? sum : test::average_of_sum(type, sum, parts);
        test::store_word(type, &expected[i * size], mean);
      }
      average_tile(type, values.data(), kCount, parts);
      EXPECT_EQ(values, expected) << type_name(type) << " of " << parts;
    }
  }
}

// More ranks than the type can count.
TEST(AverageTile, DividesSmallIntegersByLargeNumbers) {
  std::byte value{0x80};  // -128
  average_tile(hcclInt8, &value, 1, 200);
  EXPECT_EQ(value, std::byte{0});
  value = std::byte{200};
  average_tile(hcclUint8, &value, 1, 300);
  EXPECT_EQ(value, std::byte{0});
}

// The mean of the prescaled sum of `parts` equal values, each fold rounded to the type.
std::uint64_t mean_of_equal(hcclDataType_t type, std::uint64_t word, std::uint32_t parts) {
  std::array<std::byte, 2> scaled{}, sum{};
  test::store_word(type, scaled.data(), word);
  prescale_tile(type, scaled.data(), scaled.data(), 1, parts);
  sum = scaled;
  for (std::uint32_t part = 1; part < parts; ++part) {
    const std::array<const std::byte*, 2> sources{sum.data(), scaled.data()};
    std::byte* const to = sum.data();
    reduce_tile(type, hcclSum, sources, {&to, 1}, 1, StorePolicy::cached);
  }
  average_tile(type, sum.data(), 1, parts);
  std::uint16_t mean = 0;
  std::memcpy(&mean, sum.data(), sizeof mean);
  return mean;
}

// Even of the largest finite values, whose sum is infinite.
TEST(AverageTile, OfPrescaledValuesIsInRange) {
  for (const std::uint32_t parts : {2U, 4U}) {
    EXPECT_EQ(mean_of_equal(hcclFloat16, 0x7BFF, parts), 0x7BFFU) << parts;
    EXPECT_EQ(mean_of_equal(hcclBfloat16, 0xFF7F, parts), 0xFF7FU) << parts;
  }
  for (const std::uint32_t parts : {3U, 5U, 64U, 100U, 4096U}) {  // the folds round
    EXPECT_LT(mean_of_equal(hcclFloat16, 0x7BFF, parts), 0x7C00U) << parts;
    EXPECT_LT(mean_of_equal(hcclBfloat16, 0x7F7F, parts), 0x7F80U) << parts;
  }
}

TEST(PrescaleTile, GivesTheBitsOfTheReference) {
  constexpr std::size_t kCount = 5'000;  // in several blocks
  for (const hcclDataType_t type : {hcclFloat16, hcclBfloat16}) {
    for (const std::uint32_t parts : {2U, 3U, 100U}) {
      std::vector<std::byte> values(kCount * 2);
      std::vector<std::byte> expected(values.size());
      for (std::size_t i = 0; i < kCount; ++i) {
        const std::uint64_t word = test::element_word(type, test::Data::specials, 9, 0, i);
        test::store_word(type, &values[i * 2], word);
        test::store_word(type, &expected[i * 2],
                         test::scaled(type, word, test::prescale_of(parts)));
      }
      prescale_tile(type, values.data(), values.data(), kCount, parts);
      EXPECT_EQ(values, expected) << type_name(type) << " of " << parts;
    }
  }
}

}  // namespace
}  // namespace hccl::reduce
