// SPDX-License-Identifier: Apache-2.0
// Tests that results are accepted for any order of reduction, but not if a rank's contribution is
// faulty.
#include "rounding.h"

#include "element_forms.h"
#include "input_data.h"
#include "support/scalar_fold.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

using Words = std::vector<std::uint64_t>;  // the bits of one element, by rank

constexpr std::uint64_t kRoundedRun = 23;
constexpr int kRoundingRanks = 5;
constexpr std::size_t kElements = 2500;  // more than two blocks

constexpr Reduction kSum = kReductions[hcclSum];
constexpr Reduction kProduct = kReductions[hcclProd];
constexpr Reduction kAverage = kReductions[hcclAvg];

constexpr std::array kFloatTypes = {hcclFloat16, hcclBfloat16, hcclFloat32, hcclFloat64};

Expectation expectation(const char* collective, hcclDataType_t type, const Reduction& reduction,
                        int ranks) {
  const Collective* found = find_collective(collective);
  const std::uint64_t parts = found->kind == CollectiveKind::reduce_scatter ? 5 : 1;
  const DataType& data_type = kDataTypes.at(type);
  return {found, data_type,   reduction,
          1,     false,       1,
          ranks, kRoundedRun, found->counts(parts * kElements * data_type.size, data_type, ranks)};
}

std::uint64_t input(const Expectation& what, int rank, std::uint64_t index) {
  std::uint64_t word = 0;
  fill_input(what.type, {rank, what.run}, index, 1, &word);
  return word;
}

Words inputs(const Expectation& what, std::uint64_t index) {
  Words words;
  for (int rank = 0; rank < what.ranks; ++rank) words.push_back(input(what, rank, index));
  return words;
}

double value(const DataType& type, std::uint64_t word) {
  if (type.code == hcclFloat64) return hccl::test::from_word<double>(word);
  if (type.code == hcclFloat32) return hccl::test::from_word<float>(word);
  const auto narrow = static_cast<std::uint16_t>(word);
  return type.code == hcclFloat16 ? hccl::test::from_half(narrow)
                                  : hccl::test::from_bfloat16(narrow);
}

// Returns the rank whose input has the largest magnitude.
std::size_t largest(const Expectation& what, const Words& words) {
  const auto magnitude = [&](std::uint64_t word) { return std::fabs(value(what.type, word)); };
  const auto found = std::max_element(words.begin(), words.end(), [&](auto left, auto right) {
    return magnitude(left) < magnitude(right);
  });
  return static_cast<std::size_t>(found - words.begin());
}

std::uint64_t fold(const Expectation& what, const Words& words) {
  return hccl::test::fold(what.type.code, what.reduction.code, words,
                          static_cast<std::size_t>(what.ranks));
}

// Returns the result of folding two operands at a time. `choose` selects the operands among those
// that remain. Each fold rounds to the element type.
template <class Choose>
std::uint64_t fold_pairs(const Expectation& what, Words words, Choose choose) {
  const bool averages = what.reduction.code == hcclAvg;
  const hcclRedOp_t operation = averages ? hcclSum : what.reduction.code;
  while (words.size() > 1) {
    std::swap(words[choose(words.size())], words.back());
    const std::uint64_t one = words.back();
    words.pop_back();
    std::swap(words[choose(words.size())], words.back());
    words.back() = hccl::test::fold(what.type.code, operation, {words.back(), one});
  }
  return averages ? fold(what, words) : words[0];
}

// Compares the expected elements with those that `result` computes from the inputs.
template <class Result>
Agreement agreement(const Expectation& what, Result result) {
  const std::size_t size = what.type.size;
  std::vector<std::byte> found(kElements * size);
  std::vector<std::byte> expected(found.size());
  fill_expected(what, 0, kElements, expected.data());
  const std::uint64_t first = first_reduced_input(what).value_or(0);
  for (std::size_t i = 0; i < kElements; ++i) {
    const std::uint64_t word = result(inputs(what, first + i));
    std::memcpy(found.data() + i * size, &word, size);
  }
  return compare_elements(what, 0, kElements, found.data(), expected.data());
}

void for_each_rounded(int ranks, const std::function<void(const Expectation&)>& look) {
  for (const hcclDataType_t type : kFloatTypes) {
    for (const Reduction& reduction : {kSum, kProduct, kAverage}) {
      const Expectation what = expectation("all_reduce", type, reduction, ranks);
      SCOPED_TRACE(testing::Message()
                   << what.type.name << ' ' << reduction.name << " of " << ranks << " ranks");
      look(what);
    }
  }
}

class EveryOrder : public testing::TestWithParam<int> {};

TEST_P(EveryOrder, IsRight) {
  for_each_rounded(GetParam(), [](const Expectation& what) {
    const Agreement backwards = agreement(what, [&](Words words) {
      std::reverse(words.begin(), words.end());
      return fold(what, words);
    });
    EXPECT_EQ(backwards.wrong, 0U);
    const Agreement sequential = agreement(what, [&](const Words& words) {
      return fold_pairs(what, words, [](std::size_t left) { return left - 1; });
    });
    EXPECT_EQ(sequential.wrong, 0U);
    std::mt19937 random{7};
    const Agreement any = agreement(what, [&](const Words& words) {
      return fold_pairs(what, words, [&](std::size_t left) { return random() % left; });
    });
    EXPECT_EQ(any.wrong, 0U);
    // A product of many halves underflows to zero in any order.
    const bool is_zero =
        what.type.code == hcclFloat16 && what.reduction.code == hcclProd && what.ranks > 5;
    EXPECT_EQ(any.rounded == 0, is_zero);
  });
}

INSTANTIATE_TEST_SUITE_P(Rounding, EveryOrder, testing::Values(3, 5, 16, 100));

TEST(Rounding, DoesNotCountExactMatches) {
  for_each_rounded(kRoundingRanks, [](const Expectation& what) {
    const Agreement same = agreement(what, [&](const Words& words) { return fold(what, words); });
    EXPECT_EQ(same.wrong, 0U);
    EXPECT_EQ(same.rounded, 0U);
  });
}

TEST(Rounding, AppliesToTheRanksPartOfAReduceScatter) {
  const Expectation what = expectation("reduce_scatter", hcclFloat32, kSum, kRoundingRanks);
  const Agreement backwards = agreement(what, [&](Words words) {
    std::reverse(words.begin(), words.end());
    return fold(what, words);
  });
  EXPECT_EQ(backwards.wrong, 0U);
  EXPECT_GT(backwards.rounded, 0U);
}

// Requires that a fault in the largest input is detected in every element. For products of float16
// values, which are near the smallest number of the type, half of the elements suffice.
void expect_detected_in_largest(const Expectation& what,
                                const std::function<void(Words&, std::size_t)>& spoil) {
  const Agreement found = agreement(what, [&](Words words) {
    spoil(words, largest(what, words));
    return fold(what, words);
  });
  const bool near_nothing = what.type.code == hcclFloat16 && what.reduction.code == hcclProd;
  EXPECT_GE(found.wrong, near_nothing ? kElements / 2 : kElements);
}

// Requires that a fault in the input of any single rank is detected in at least a fifth of the
// elements.
void expect_detected_in_any_rank(const Expectation& what,
                                 const std::function<void(Words&, std::size_t)>& spoil) {
  for (std::size_t rank = 0; rank < kRoundingRanks; ++rank) {
    const Agreement found = agreement(what, [&](Words words) {
      spoil(words, rank);
      return fold(what, words);
    });
    EXPECT_GE(found.wrong, kElements / 5) << "rank " << rank;
  }
}

void leave_out(Words& words, std::size_t rank) {
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(rank));
}

void take_twice(Words& words, std::size_t rank) { words.push_back(words[rank]); }

void use_another_rank(Words& words, std::size_t rank) {
  words[rank] = words[(rank + 1) % kRoundingRanks];
}

TEST(Rounding, DoesNotHideAMissingContribution) {
  for_each_rounded(kRoundingRanks, [](const Expectation& what) {
    if (what.reduction.code != hcclProd) expect_detected_in_largest(what, leave_out);
    expect_detected_in_any_rank(what, leave_out);
  });
}

TEST(Rounding, DoesNotHideAContributionCountedTwice) {
  for_each_rounded(kRoundingRanks, [](const Expectation& what) {
    if (what.reduction.code != hcclProd) expect_detected_in_largest(what, take_twice);
    expect_detected_in_any_rank(what, take_twice);
  });
}

TEST(Rounding, DoesNotHideAWrongRanksContribution) {
  for_each_rounded(kRoundingRanks, [](const Expectation& what) {
    expect_detected_in_any_rank(what, use_another_rank);
  });
}

TEST(Rounding, DoesNotHideAFlippedHighBitOfALargeContribution) {
  for_each_rounded(kRoundingRanks, [](const Expectation& what) {
    const int mantissa = what.type.code == hcclFloat16    ? 10
                         : what.type.code == hcclBfloat16 ? 7
                         : what.type.code == hcclFloat32  ? 23
                                                          : 52;
    expect_detected_in_largest(what, [mantissa](Words& words, std::size_t rank) {
      words[rank] ^= std::uint64_t{1} << (mantissa - 1);
    });
  });
}

TEST(Rounding, DoesNotHideNaN) {
  const Words none = {0x7C00, 0x7E00, 0xFC00};  // infinities and NaN of float16
  for (const std::uint64_t word : none) {
    const Expectation what = expectation("all_reduce", hcclFloat16, kSum, kRoundingRanks);
    EXPECT_EQ(agreement(what, [&](const Words&) { return word; }).wrong, kElements);
  }
  const Expectation what = expectation("all_reduce", hcclFloat32, kProduct, kRoundingRanks);
  for (const float value : {INFINITY, -INFINITY, NAN, 0.0F}) {
    const auto word = hccl::test::to_word(value);
    EXPECT_EQ(agreement(what, [&](const Words&) { return word; }).wrong, kElements) << value;
  }
}

TEST(ElementForms, LoadEvery16BitFloat) {
  for (std::uint32_t word = 0; word <= 0xFFFF; ++word) {
    const auto half = static_cast<std::uint16_t>(word);
    const float right = hccl::test::from_half(half);
    const float loaded = from_half(half);
    ASSERT_TRUE(std::isnan(right) ? std::isnan(loaded) : loaded == right) << word;
  }
}

// Compares the expected elements with a copy in which one element differs in its last bit.
Agreement off_by_one(const Expectation& what) {
  std::vector<std::byte> expected(kElements * what.type.size);
  fill_expected(what, 0, kElements, expected.data());
  std::vector<std::byte> found = expected;
  found[1700 * what.type.size] ^= std::byte{1};
  return compare_elements(what, 0, kElements, found.data(), expected.data());
}

void expect_bitwise(const Expectation& what) {
  const Agreement found = off_by_one(what);
  EXPECT_EQ(found.wrong, 1U);
  EXPECT_EQ(found.rounded, 0U);
}

TEST(Rounding, IsAllowedNowhereElse) {
  expect_bitwise(expectation("all_reduce", hcclInt32, kSum, kRoundingRanks));
  expect_bitwise(expectation("all_reduce", hcclFloat32, kReductions[hcclMin], kRoundingRanks));
  expect_bitwise(expectation("all_reduce", hcclFloat64, kReductions[hcclMax], kRoundingRanks));
  expect_bitwise(expectation("broadcast", hcclFloat32, kNoReduction, kRoundingRanks));
  Expectation reduce = expectation("reduce", hcclFloat32, kSum, kRoundingRanks);
  EXPECT_EQ(off_by_one(reduce).rounded, 1U) << "at the root";
  reduce.rank = 0;
  expect_bitwise(reduce);
  for (const int ranks : {1, 2})
    for_each_rounded(ranks, [](const Expectation& what) { expect_bitwise(what); });
}

}  // namespace
}  // namespace hccl_perf
