// SPDX-License-Identifier: Apache-2.0
// Tests expected results against a plain definition of each collective, element by element.
#include "expected.h"

#include "input_data.h"
#include "support/scalar_fold.h"

#include <vector>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

constexpr int kRanks = 5;
constexpr std::uint64_t kRun = 11;

Expectation expectation(const char* collective, const DataType& type, const Reduction& reduction,
                        int rank, std::uint64_t bytes) {
  const Collective* found = find_collective(collective);
  return {found, type, reduction, 2, false, rank, kRanks, kRun, found->counts(bytes, type, kRanks)};
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

// Returns one element of a reduction in rank order.
std::uint64_t reduced_word(const DataType& type, hcclRedOp_t operation, std::uint64_t index) {
  std::vector<std::uint64_t> words;
  for (int rank = 0; rank < kRanks; ++rank) {
    std::uint64_t word = 0;
    fill_input(type, {rank, kRun}, index, 1, &word);
    words.push_back(word);
  }
  return hccl::test::fold(type.code, operation, words);
}

void expect_reduction(const char* collective, const DataType& type, std::uint64_t first, int rank) {
  std::vector<Reduction> reductions(kReductions.begin(), kReductions.end());
  if (type.code <= hcclUint64)
    reductions.insert(reductions.end(), kBitReductions.begin(), kBitReductions.end());
  for (const Reduction& reduction : reductions) {
    const Expectation what = expectation(collective, type, reduction, rank, 20'000);
    ASSERT_GT(what.counts.receive, 0U);
    for (std::uint64_t i = 0; i < what.counts.receive; ++i) {
      std::uint64_t word = 0;
      fill_expected(what, i, 1, &word);
      ASSERT_EQ(word, reduced_word(type, reduction.code, first + i))
          << type.name << ' ' << reduction.name << " at " << i;
    }
  }
}

const DataType& type_of(hcclDataType_t code) { return kDataTypes.at(code); }

TEST(Expected, AllReduceFoldsInRankOrder) {
  for (const DataType& type : kDataTypes) {
    ASSERT_EQ(type.code, kDataTypes.at(type.code).code);
    expect_reduction("all_reduce", type, 0, 1);
  }
}

TEST(Expected, ReduceScatterIsThePartOfTheRank) {
  const std::uint64_t part =
      find_collective("reduce_scatter")->counts(20'000, type_of(hcclFloat32), kRanks).receive;
  expect_reduction("reduce_scatter", type_of(hcclFloat32), 3 * part, 3);
}

TEST(Expected, ReduceIsTheReductionAtTheRootAndNothingElsewhere) {
  const DataType& type = type_of(hcclFloat64);
  expect_reduction("reduce", type, 0, 2);
  Expectation what = expectation("reduce", type, kReductions[hcclSum], 1, 20'000);
  for (const std::uint64_t word : expected<std::uint64_t>(what))
    ASSERT_EQ(word, 0xA5A5A5A5A5A5A5A5U);  // untouched memory
  what.in_place = true;
  const auto values = expected<std::uint64_t>(what);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], input<std::uint64_t>(type, 1, i)) << i;
}

TEST(Expected, AllToAllIsThePartOfTheRankOfEveryInput) {
  const DataType& type = type_of(hcclInt32);
  const auto values =
      expected<std::int32_t>(expectation("alltoall", type, kNoReduction, 1, 20'000));
  const std::size_t part = values.size() / kRanks;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int from = static_cast<int>(i / part);
    ASSERT_EQ(values[i], input<std::int32_t>(type, from, part + i % part)) << i;
  }
}

TEST(Expected, SendRecvIsTheInputOfThePrecedingRank) {
  const DataType& type = type_of(hcclUint8);
  const auto values = expected<std::uint8_t>(expectation("sendrecv", type, kNoReduction, 0, 999));
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], input<std::uint8_t>(type, kRanks - 1, i)) << i;
}

// Returns the expectation of one of 4 ranks, where ranks i and i + 2 form a pair.
Expectation of_pairs(const char* collective, int rank) {
  const Collective* found = find_collective(collective);
  const DataType& type = type_of(hcclInt32);
  return {found, type, kNoReduction, -1, false, rank, 4, kRun, found->counts(256, type, 4)};
}

TEST(Expected, PairsExchangeInputs) {
  const DataType& type = type_of(hcclInt32);
  for (const char* collective : {"pingpong", "bidirectional"}) {
    for (int rank = 0; rank < 4; ++rank) {
      const auto values = expected<std::int32_t>(of_pairs(collective, rank));
      ASSERT_EQ(values.size(), 64U);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], input<std::int32_t>(type, (rank + 2) % 4, i)) << i;
    }
  }
}

TEST(Expected, MessageRateReachesOnlyTheSecondHalf) {
  const auto sender = expected<std::uint32_t>(of_pairs("message_rate", 1));
  ASSERT_EQ(sender.size(), 64U * 64);
  for (const std::uint32_t word : sender) ASSERT_EQ(word, 0xA5A5A5A5U);  // untouched memory
  const auto receiver = expected<std::int32_t>(of_pairs("message_rate", 3));
  for (std::size_t i = 0; i < receiver.size(); ++i)
    ASSERT_EQ(receiver[i], input<std::int32_t>(type_of(hcclInt32), 1, i)) << i;
}

TEST(Expected, AllGatherIsEveryInputInRankOrder) {
  const DataType& type = type_of(hcclInt32);
  const Expectation what = expectation("all_gather", type, kNoReduction, 1, 20'000);
  const auto values = expected<std::int32_t>(what);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int rank = static_cast<int>(i / what.counts.send);
    ASSERT_EQ(values[i], input<std::int32_t>(type, rank, i % what.counts.send)) << i;
  }
}

TEST(Expected, BroadcastIsTheRootsInput) {
  const DataType& type = type_of(hcclFloat32);
  const auto values =
      expected<std::uint32_t>(expectation("broadcast", type, kNoReduction, 4, 20'000));
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], input<std::uint32_t>(type, 2, i)) << i;
}

TEST(Expected, ADifferentSummationOrderChangesTheBits) {
  const auto right = expected<float>(
      expectation("all_reduce", type_of(hcclFloat32), kReductions[hcclSum], 0, 40'000));
  std::size_t different = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    float backwards = input<float>(type_of(hcclFloat32), kRanks - 1, i);
    for (int rank = kRanks - 2; rank >= 0; --rank)
      backwards += input<float>(type_of(hcclFloat32), rank, i);
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
