// SPDX-License-Identifier: Apache-2.0
// Interprets schedules on real elements. The result of every algorithm must match the collective's
// definition, element by element: for counts that do not divide evenly, in several channels, in
// place and out of place.
#include "interpreter.h"

#include "algorithms/catalogue.h"
#include "algorithms/hierarchical.h"
#include "elements.h"

#include <numeric>

#include <gtest/gtest.h>

namespace hccl::algorithms {
namespace {

using test::Words;

constexpr std::uint64_t kSeed = 11;
constexpr std::uint32_t kAlignment = 4;

struct Case {
  schedule::Shape shape;  // the shape of rank 0
  std::uint64_t count = 0;
  hcclDataType_t type = hcclInt32;
  hcclRedOp_t operation = hcclSum;
  bool mixed = false;
};

std::uint64_t input_word(const Case& of, std::int32_t rank, std::uint64_t index) {
  return test::element_word(of.type, test::Data::numbers, kSeed, rank, index);
}

// Returns the element that the collective's definition requires, folded in rank order.
std::uint64_t expected(const Case& of, std::int32_t rank, std::uint64_t index) {
  const std::uint64_t block = of.count == 0 ? 0 : index / of.count;
  const std::uint64_t within = index - block * of.count;
  const std::uint64_t own = static_cast<std::uint64_t>(rank) * of.count;
  const auto source = static_cast<std::int32_t>(block);
  std::uint64_t from = index;
  switch (of.shape.collective) {
    case Collective::broadcast:
      return input_word(of, of.shape.root, index);
    case Collective::all_gather:
      return input_word(of, source, within);
    case Collective::all_to_all:
      return input_word(of, source, own + within);
    case Collective::reduce_scatter:
      from = own + index;
      break;
    default:
      break;
  }
  std::vector<std::uint64_t> words;
  words.reserve(of.shape.ranks());
  for (std::int32_t other = 0; other < of.shape.rank_count; ++other)
    words.push_back(input_word(of, other, from));
  return test::fold(of.type, of.operation, words);
}

template <class Build>
Words run(const Case& of, const Build& build) {
  std::vector<test::AllRanks> channels;
  schedule::Shape shape = of.shape;
  for (shape.channel = 0; shape.channel < shape.channels; ++shape.channel)
    channels.push_back(test::build_all(shape, build, of.mixed));
  Words inputs(shape.ranks());
  for (std::int32_t rank = 0; rank < shape.rank_count; ++rank) {
    for (std::uint64_t i = 0; i < of.count * shape.blocks_in_input(); ++i)
      inputs[static_cast<std::size_t>(rank)].push_back(input_word(of, rank, i));
  }
  return test::interpret(channels, of.type, of.operation, inputs, of.count, kAlignment);
}

void compare(const Case& of, const Words& outputs) {
  for (std::int32_t rank = 0; rank < of.shape.rank_count; ++rank) {
    schedule::Shape shape = of.shape;
    shape.rank = rank;
    const auto& output = outputs.at(static_cast<std::size_t>(rank));
    ASSERT_EQ(output.size(), shape.has_output() ? of.count * shape.blocks_in_output() : 0);
    for (std::uint64_t i = 0; i < output.size(); ++i)
      ASSERT_EQ(output[i], expected(of, rank, i))
          << test::describe(of.shape) << (of.mixed ? ", some in place" : "") << ", rank " << rank
          << ", element " << i << " of " << of.count;
  }
}

template <class Build>
void compare_places(Case of, const Build& build) {
  for (const int placement : {0, 1, 2}) {
    of.shape.in_place = placement == 1;
    of.mixed = placement == 2;
    compare(of, run(of, build));
    if (testing::Test::HasFatalFailure()) return;
  }
}

void compare_counts(const Algorithm& algorithm, std::int32_t rank_count) {
  for (const std::uint64_t count : {0U, 1U, 2U, 7U, 100U, 1000U}) {
    for (const std::uint32_t channels : {1U, 3U}) {
      Case of;
      of.shape.collective = algorithm.collective;
      of.shape.rank_count = rank_count;
      of.shape.root = rank_count / 2;
      of.shape.channels = channels;
      of.shape.pipeline = channels;
      of.count = count;
      compare_places(of, algorithm.build);
    }
  }
}

TEST(Interpreter, EveryAlgorithmMatchesDefinition) {
  for (const Algorithm& algorithm : flat()) {
    if (algorithm.collective == Collective::barrier) continue;
    for (const std::int32_t rank_count : {1, 2, 3, 4, 6, 9}) {
      compare_counts(algorithm, rank_count);
      if (HasFatalFailure()) FAIL() << algorithm.name;
    }
  }
}

void compare_hierarchical(const std::vector<std::int32_t>& sizes) {
  Case of;
  of.shape.collective = Collective::all_reduce;
  of.shape.rank_count = std::accumulate(sizes.begin(), sizes.end(), 0);
  of.count = 1001;
  for (const char* const rails : {"ring", "tree", "halving_doubling", "one_shot"}) {
    const Algorithm& algorithm = *find(rails, Collective::all_reduce);
    compare_places(of, [&](const schedule::Shape& shape) {
      return hierarchical_all_reduce(shape, sizes, algorithm);
    });
  }
}

TEST(Interpreter, HierarchicalAllReduceMatchesDefinition) {
  compare_hierarchical({1, 3, 4});
  compare_hierarchical({3, 3});
}

// Float sums depend on the order of addition, and so reveal the order of the folds.
TEST(Interpreter, DirectAlgorithmsFoldInRankOrder) {
  for (const char* const name : {"direct", "one_shot"}) {
    for (const hcclRedOp_t operation : {hcclSum, hcclMin, hcclAvg}) {
      Case of;
      of.shape.collective = Collective::all_reduce;
      of.shape.rank_count = 7;
      of.count = 200;
      of.type = hcclFloat32;
      of.operation = operation;
      for (const bool in_place : {false, true}) {
        of.shape.in_place = in_place;
        compare(of, run(of, find(name, Collective::all_reduce)->build));
      }
    }
  }
}

void expect_finite_mean_of_largest(const Algorithm& algorithm, const test::AllRanks& all,
                                   std::int32_t ranks, hcclDataType_t type) {
  const std::uint64_t infinity = type == hcclFloat16 ? 0x7C00 : 0x7F80;
  const Words inputs(static_cast<std::size_t>(ranks), std::vector<std::uint64_t>(40, infinity - 1));
  for (const auto& output : test::interpret({all}, type, hcclAvg, inputs, 40, 1)) {
    for (const std::uint64_t mean : output) EXPECT_LT(mean, infinity) << algorithm.name;
  }
}

// The largest inputs are the worst case for any order of the folds, because rounding is monotonic.
TEST(Interpreter, AveragesOfLargestValuesAreFinite) {
  for (const Algorithm& algorithm : flat()) {
    if (algorithm.collective != Collective::all_reduce) continue;
    for (std::int32_t ranks = 2; ranks <= 17; ++ranks) {
      schedule::Shape shape{.collective = Collective::all_reduce, .rank_count = ranks};
      const test::AllRanks all = test::build_all(shape, algorithm.build);
      for (const hcclDataType_t type : {hcclFloat16, hcclBfloat16})
        expect_finite_mean_of_largest(algorithm, all, ranks, type);
    }
  }
}

TEST(Interpreter, AllReduceGivesSameBitsOnAllRanks) {
  for (const Algorithm& algorithm : flat()) {
    if (algorithm.collective != Collective::all_reduce) continue;
    for (const hcclDataType_t type : {hcclFloat32, hcclBfloat16, hcclFloat16}) {
      Case of;
      of.shape.collective = Collective::all_reduce;
      of.shape.rank_count = 6;
      of.shape.pipeline = 3;
      of.count = 300;
      of.type = type;
      of.mixed = true;
      const Words outputs = run(of, algorithm.build);
      for (const auto& output : outputs) EXPECT_EQ(output, outputs[0]) << algorithm.name;
    }
  }
}

}  // namespace
}  // namespace hccl::algorithms
