// SPDX-License-Identifier: Apache-2.0
// Expected results against a plain definition of each collective, written out element by element.
#include "expected.h"

#include "input_data.h"

#include <bit>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

constexpr int kRanks = 5;
constexpr std::uint64_t kRun = 11;

Expectation expectation(const char* collective, const DataType& type, const Reduction& reduction,
                        int rank, std::uint64_t bytes) {
  const Collective* found = find_collective(collective);
  return {found, type, reduction, 2, rank, kRanks, kRun, found->counts(bytes, type, kRanks)};
}

template <class Element>
std::vector<Element> expected(const Expectation& what) {
  std::vector<Element> values(what.counts.receive);
  fill_expected(what, 0, values.size(), values.data());
  return values;
}

template <class Element>
Element input(const DataType& type, int rank, std::uint64_t index) {
  Element value;
  fill_input(type, {rank, kRun}, index, 1, &value);
  return value;
}

// One element of a reduction in rank order, in the plainest terms.
std::uint32_t reduced_bits(const DataType& type, hcclRedOp_t operation, std::uint64_t index) {
  if (type.code == hcclInt32) {
    auto total = input<std::int32_t>(type, 0, index);
    for (int rank = 1; rank < kRanks; ++rank) {
      const auto value = input<std::int32_t>(type, rank, index);
      const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(total) +
                                                 static_cast<std::uint32_t>(value));
      total = operation == hcclSum   ? sum
              : operation == hcclMin ? std::min(total, value)
                                     : std::max(total, value);
    }
    return static_cast<std::uint32_t>(total);
  }
  const auto load = [&](int rank) {
    if (type.code == hcclFloat32) return input<float>(type, rank, index);
    return std::bit_cast<float>(static_cast<std::uint32_t>(input<std::uint16_t>(type, rank, index))
                                << 16);
  };
  float total = load(0);
  for (int rank = 1; rank < kRanks; ++rank) {
    const float value = load(rank);
    total = operation == hcclSum   ? total + value
            : operation == hcclMin ? std::min(total, value)
                                   : std::max(total, value);
  }
  if (type.code == hcclFloat32) return std::bit_cast<std::uint32_t>(total);
  // To the nearest bfloat16: of the two neighbours the closer one, the even one if both are as
  // close.
  const std::uint32_t low = std::bit_cast<std::uint32_t>(total) >> 16;
  const double below = std::bit_cast<float>(low << 16);
  const double above = std::bit_cast<float>((low + 1) << 16);
  const double to_below = std::abs(static_cast<double>(total) - below);
  const double to_above = std::abs(above - static_cast<double>(total));
  if (to_below == to_above) return low % 2 == 0 ? low : low + 1;
  return to_below < to_above ? low : low + 1;
}

template <class Element>
void expect_reduction(const char* collective, const DataType& type, std::uint64_t first, int rank) {
  for (const Reduction& reduction : kReductions) {
    const auto values = expected<Element>(expectation(collective, type, reduction, rank, 20'000));
    ASSERT_GT(values.size(), 0U);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &values[i], sizeof values[i]);
      ASSERT_EQ(bits, reduced_bits(type, reduction.code, first + i))
          << type.name << ' ' << reduction.name << " at " << i;
    }
  }
}

TEST(Expected, AllReduceFoldsInRankOrder) {
  expect_reduction<float>("all_reduce", kDataTypes[0], 0, 1);
  expect_reduction<std::uint16_t>("all_reduce", kDataTypes[1], 0, 1);
  expect_reduction<std::int32_t>("all_reduce", kDataTypes[2], 0, 1);
}

TEST(Expected, ReduceScatterIsTheRanksPartOfTheReduction) {
  const std::uint64_t part =
      find_collective("reduce_scatter")->counts(20'000, kDataTypes[0], kRanks).receive;
  expect_reduction<float>("reduce_scatter", kDataTypes[0], 3 * part, 3);
}

TEST(Expected, AllGatherIsEveryInputInRankOrder) {
  const DataType& type = kDataTypes[2];
  const Expectation what = expectation("all_gather", type, kNoReduction, 1, 20'000);
  const auto values = expected<std::int32_t>(what);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int rank = static_cast<int>(i / what.counts.send);
    ASSERT_EQ(values[i], input<std::int32_t>(type, rank, i % what.counts.send)) << i;
  }
}

TEST(Expected, BroadcastIsTheRootsInput) {
  const DataType& type = kDataTypes[0];
  const auto values =
      expected<std::uint32_t>(expectation("broadcast", type, kNoReduction, 4, 20'000));
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], input<std::uint32_t>(type, 2, i)) << i;
}

TEST(Expected, AnotherOrderOfSummationHasOtherBits) {
  const auto right =
      expected<float>(expectation("all_reduce", kDataTypes[0], kReductions[0], 0, 40'000));
  std::size_t different = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    float backwards = input<float>(kDataTypes[0], kRanks - 1, i);
    for (int rank = kRanks - 2; rank >= 0; --rank)
      backwards += input<float>(kDataTypes[0], rank, i);
    if (backwards != right[i]) ++different;
  }
  EXPECT_GT(different, right.size() / 10);
}

TEST(CountDifferences, CountsElementsNotBytes) {
  std::vector<std::uint32_t> left(100, 0);
  std::vector<std::uint32_t> right = left;
  EXPECT_EQ(count_differences(left.data(), right.data(), left.size(), 4), 0U);
  right[3] = 0xFFFFFFFF;
  right[99] = 1;
  EXPECT_EQ(count_differences(left.data(), right.data(), left.size(), 4), 2U);
  EXPECT_EQ(count_differences(left.data(), right.data(), 200, 2), 3U);
}

}  // namespace
}  // namespace hccl_perf
