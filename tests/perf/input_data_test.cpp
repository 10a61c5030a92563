// SPDX-License-Identifier: Apache-2.0
// Tests the input generator. Any range of elements must be computable without the others, values
// must differ between elements, ranks and runs, floats must span many magnitudes, and all bits of
// integers must vary.
#include "input_data.h"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

template <class Element>
std::vector<Element> input(const DataType& type, InputKey key, std::uint64_t first,
                           std::size_t count) {
  std::vector<Element> values(count);
  fill_input(type, key, first, count, values.data());
  return values;
}

const DataType kDrawnFloat = kDataTypes[hcclFloat32];
const DataType kDrawnBfloat16 = kDataTypes[hcclBfloat16];
const DataType kInt32 = kDataTypes[hcclInt32];

TEST(InputData, AnyPartCanBeComputedAlone) {
  const auto whole = input<float>(kDrawnFloat, {3, 7}, 0, 1000);
  const auto piece = input<float>(kDrawnFloat, {3, 7}, 333, 100);
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 333));
  const auto whole16 = input<std::uint16_t>(kDrawnBfloat16, {3, 7}, 0, 1000);
  const auto piece16 = input<std::uint16_t>(kDrawnBfloat16, {3, 7}, 501, 77);
  EXPECT_TRUE(std::equal(piece16.begin(), piece16.end(), whole16.begin() + 501));
}

TEST(InputData, FloatsAreNormalAndSpanManyMagnitudes) {
  const auto values = input<float>(kDrawnFloat, {0, 1}, 0, 100'000);
  std::set<int> exponents;
  int negative = 0;
  for (const float value : values) {
    ASSERT_TRUE(std::isnormal(value));
    exponents.insert(std::ilogb(value));
    if (value < 0) ++negative;
  }
  EXPECT_EQ(*exponents.begin(), -16);
  EXPECT_EQ(*exponents.rbegin(), 15);
  EXPECT_EQ(exponents.size(), 32U);
  EXPECT_NEAR(negative, 50'000, 2'000);
}

TEST(InputData, DiffersBetweenElementsRanksAndRuns) {
  const auto values = input<std::uint32_t>(kInt32, {0, 1}, 0, 100'000);
  EXPECT_EQ(std::set<std::uint32_t>(values.begin(), values.end()).size(), values.size());
  const auto other_rank = input<std::uint32_t>(kInt32, {1, 1}, 0, 100'000);
  const auto other_run = input<std::uint32_t>(kInt32, {0, 2}, 0, 100'000);
  std::size_t same_as_rank = 0;
  std::size_t same_as_run = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == other_rank[i]) ++same_as_rank;
    if (values[i] == other_run[i]) ++same_as_run;
  }
  EXPECT_LE(same_as_rank, 2U);
  EXPECT_LE(same_as_run, 2U);
}

TEST(InputData, EveryBitOfAnIntegerVaries) {
  const auto values = input<std::uint32_t>(kInt32, {5, 9}, 12345, 100'000);
  for (int bit = 0; bit < 32; ++bit) {
    int set = 0;
    for (const std::uint32_t value : values) {
      if (((value >> bit) & 1U) != 0) ++set;
    }
    EXPECT_NEAR(set, 50'000, 2'000) << "bit " << bit;
  }
}

}  // namespace
}  // namespace hccl_perf
