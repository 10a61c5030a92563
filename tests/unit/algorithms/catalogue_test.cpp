// SPDX-License-Identifier: Apache-2.0
// Proves every algorithm of the catalogue for every number of ranks, root, place and channel.
#include "algorithms/catalogue.h"

#include "all_ranks.h"
#include "proof/verifier.h"

#include <ostream>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace hccl::algorithms {

void PrintTo(const Algorithm& algorithm, std::ostream* out) {
  *out << algorithm.name << " " << name_of(algorithm.collective);
}

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kThorough = false;  // sanitizers see a sample of rank counts and roots
#else
constexpr bool kThorough = true;
#endif

bool sampled(std::int32_t rank_count) {
  return kThorough || rank_count <= 17 || rank_count == 32 || rank_count == 61 || rank_count == 128;
}

// Every rank count up to 128, and for each root those neighbours of it that matter.
std::vector<std::int32_t> roots_of(const Algorithm& algorithm, std::int32_t rank_count) {
  std::vector<std::int32_t> roots;
  for (std::int32_t root = 0; root < rank_count; ++root) {
    const bool chosen = kThorough || rank_count <= 17 || root == rank_count / 3;
    if (root == 0 || (traits(algorithm.collective).has_root() && chosen)) roots.push_back(root);
  }
  return roots;
}

class Catalogue : public testing::TestWithParam<Algorithm> {
 protected:
  static void prove(const schedule::Shape& shape, bool mixed = false) {
    const test::AllRanks all = test::build_all(shape, GetParam().build, mixed);
    const auto violation = proof::verify(all.shapes, all.schedules, GetParam().bound(shape));
    ASSERT_FALSE(violation) << violation->text << "; " << test::describe(shape)
                            << (mixed ? ", some in place" : "");
  }

  static void prove_places(schedule::Shape shape) {
    for (const bool in_place : {false, true}) {
      shape.in_place = in_place;
      prove(shape);
    }
    prove(shape, true);
  }

  // Only algorithms with several channels look at their numbers.
  static void prove_channels_and_roots(schedule::Shape shape) {
    for (shape.channel = 0; shape.channel < GetParam().knobs.channels; ++shape.channel) {
      for (const std::int32_t root : {0, shape.rank_count - 1}) {
        shape.root = traits(shape.collective).has_root() ? root : 0;
        prove_places(shape);
      }
    }
  }
};

TEST_P(Catalogue, HoldsForEveryRankCountAndRoot) {
  schedule::Shape shape;
  shape.collective = GetParam().collective;
  for (shape.rank_count = 1; shape.rank_count <= 128; ++shape.rank_count) {
    if (!sampled(shape.rank_count)) continue;
    for (const std::int32_t root : roots_of(GetParam(), shape.rank_count)) {
      shape.root = root;
      prove_places(shape);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Catalogue, HoldsInEveryChannelAndPipeline) {
  schedule::Shape shape;
  shape.collective = GetParam().collective;
  shape.channels = 4;
  const std::int32_t most = kThorough ? 66 : 18;
  for (shape.rank_count = 2; shape.rank_count <= most; ++shape.rank_count) {
    for (const std::uint32_t pipeline : {2U, 7U, 32U}) {
      shape.pipeline = pipeline;
      prove_channels_and_roots(shape);
      if (HasFatalFailure()) return;
    }
  }
}

// Algorithms that grow with the square of the ranks are sampled up to 512 ranks, all others up to
// 4096.
TEST_P(Catalogue, HoldsForManyRanks) {
  schedule::Shape shape;
  shape.collective = GetParam().collective;
  shape.pipeline = 4;
  const std::set<std::string_view> light = {"tree", "chain", "dissemination"};
  const bool linear = light.contains(GetParam().name) || traits(shape.collective).has_root();
  for (const std::int32_t rank_count : {200, 257, 512, 1000, 2049, 4096}) {
    if (rank_count > (linear ? 4096 : 512) || (!kThorough && rank_count > 200)) continue;
    shape.rank_count = rank_count;
    shape.root = traits(shape.collective).has_root() ? rank_count / 3 : 0;
    for (shape.channel = 0; shape.channel < 2; ++shape.channel) {
      shape.channels = 2;
      shape.in_place = shape.channel == 1;
      prove(shape);
      if (HasFatalFailure()) return;
    }
  }
}

std::string name_of_case(const testing::TestParamInfo<Algorithm>& info) {
  return std::string(info.param.name) + "_" + name_of(info.param.collective);
}

INSTANTIATE_TEST_SUITE_P(All, Catalogue, testing::ValuesIn(flat().begin(), flat().end()),
                         name_of_case);

TEST(CatalogueNames, AreFoundAndUnique) {
  std::set<std::pair<std::string_view, Collective>> seen;
  for (const Algorithm& algorithm : flat()) {
    EXPECT_TRUE(seen.emplace(algorithm.name, algorithm.collective).second) << algorithm.name;
    EXPECT_EQ(find(algorithm.name, algorithm.collective), &algorithm);
  }
  EXPECT_EQ(find("ring", Collective::all_to_all), nullptr);
  EXPECT_EQ(find("rings", Collective::all_reduce), nullptr);
}

TEST(CatalogueNames, HaveAHierarchicalAlgorithmOverEachAllReduce) {
  for (const Algorithm& rails : flat()) {
    EXPECT_FALSE(rails.hierarchical());
    if (rails.collective != Collective::all_reduce) continue;
    const Algorithm& over = hierarchical_over(rails);
    EXPECT_EQ(over.name, "hierarchical");
    EXPECT_EQ(over.across_nodes, rails.name);
    EXPECT_EQ(over.build, rails.build);
  }
}

}  // namespace
}  // namespace hccl::algorithms
