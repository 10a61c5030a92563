// SPDX-License-Identifier: Apache-2.0
// Tests the scalar reference on values worked out by hand, the range of the test data, and
// names_rank().
#include "elements.h"

#include "check.h"

#include <limits>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

TEST(Bfloat16, RoundsToNearestEven) {
  EXPECT_EQ(to_bfloat16(1.0F), 0x3F80U);
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F), 0x3F80U);             // a tie: rounds down to even
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-7F + 0x1p-8F), 0x3F82U);   // a tie: rounds up to even
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F + 0x1p-20F), 0x3F81U);  // above the tie
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()), 0x7F80U);
  EXPECT_EQ(to_bfloat16(-std::numeric_limits<float>::quiet_NaN()), 0x7FC0U);
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(to_half(1.0F), 0x3C00U);
  EXPECT_EQ(to_half(1.0F + 0x1p-11F), 0x3C00U);             // a tie: rounds down to even
  EXPECT_EQ(to_half(1.0F + 0x1p-10F + 0x1p-11F), 0x3C02U);  // a tie: rounds up to even
  EXPECT_EQ(to_half(-0x1p-24F), 0x8001U);                   // the smallest subnormal
  EXPECT_EQ(to_half(0x1p-25F), 0x0000U);                    // half of the smallest subnormal: a tie
  EXPECT_EQ(to_half(0x1.8p-25F), 0x0001U);
  EXPECT_EQ(to_half(0x1.FF8p-15F), 0x03FFU);  // the largest subnormal
  EXPECT_EQ(to_half(0x1.FFCp-15F), 0x0400U);  // a tie: rounds up to the smallest normal number
  EXPECT_EQ(to_half(65504.0F), 0x7BFFU);
  EXPECT_EQ(to_half(65519.9F), 0x7BFFU);
  EXPECT_EQ(to_half(65520.0F), 0x7C00U);
  for (std::uint32_t word = 0; word < 0x7C00; ++word) {
    EXPECT_EQ(to_half(from_half(static_cast<std::uint16_t>(word))), word);
  }
}

TEST(Fold, AveragesInTheSumType) {
  // -3 / 2 is rounded toward zero, to -1.
  EXPECT_EQ(fold(hcclInt32, hcclAvg, {static_cast<std::uint32_t>(-3), 0}), 0xFFFFFFFFU);
  EXPECT_EQ(fold(hcclUint8, hcclAvg, {200, 100}), (300 - 256) / 2U);    // the sum wraps
  EXPECT_EQ(fold(hcclBfloat16, hcclAvg, {0x3F80U, 0x4040U}), 0x4000U);  // the mean of 1 and 3
}

TEST(Fold, OrdersSignedZerosAndReturnsCanonicalNaN) {
  EXPECT_EQ(fold(hcclFloat32, hcclMin, {0x00000000U, 0x80000000U}), 0x80000000U);
  EXPECT_EQ(fold(hcclFloat32, hcclMax, {0x80000000U, 0x00000000U}), 0x00000000U);
  EXPECT_EQ(fold(hcclFloat32, hcclMax, {0xFFC12345U, 0x3F800000U}), 0x7FC00000U);
  EXPECT_EQ(fold(hcclBfloat16, hcclMin, {0x3F80U, 0xFFC1U}), 0x7FC0U);
  EXPECT_EQ(fold(hcclInt32, hcclMin, {1U, 0xFFFFFFFFU}), 0xFFFFFFFFU);
}

TEST(Fold, WrapsIntegersAndRoundsBfloat16Once) {
  EXPECT_EQ(fold(hcclInt32, hcclSum, {0x7FFFFFFFU, 1U}), 0x80000000U);
  // 256 + 1 + 1: rounding after each addition would lose both ones.
  EXPECT_EQ(fold(hcclBfloat16, hcclSum, {0x4380U, 0x3F80U, 0x3F80U}), 0x4381U);
}

TEST(Fold, DependsOnTheOrder) {
  EXPECT_NE(fold(hcclFloat32, hcclSum, {0x4B800000U, 0xCB800000U, 0x3F000000U}),
            fold(hcclFloat32, hcclSum, {0x3F000000U, 0x4B800000U, 0xCB800000U}));
}

TEST(ElementBits, StayWithinTheRange) {
  for (std::size_t index = 0; index < 10'000; ++index) {
    const std::uint64_t word = element_word(hcclFloat32, Data::numbers, 7, 1, index);
    const std::uint64_t exponent = (word >> 23) & 0xFFU;
    EXPECT_GE(exponent, 127U - 20U);
    EXPECT_LT(exponent, 127U + 20U);
  }
}

TEST(NamesRank, ReadsListsAndRanges) {
  EXPECT_TRUE(names_rank("op 41: rank 3 all_reduce but ranks 0-2,4-7 broadcast", 3));
  EXPECT_TRUE(names_rank("ranks 0-2,4-7 wait", 5));
  EXPECT_TRUE(names_rank("ranks 0, 2 and 6 are missing", 6));
  EXPECT_FALSE(names_rank("ranks 0-2,4-7 wait for rank 13", 3));
  EXPECT_FALSE(names_rank("nranks 3", 2));
}

}  // namespace
}  // namespace hccl::test
