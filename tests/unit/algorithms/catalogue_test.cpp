// SPDX-License-Identifier: Apache-2.0
// Tests the catalogue's algorithms, and the binary trees that some of them use.

#include "algorithms/catalogue.h"

#include "algorithms/binary_tree.h"
#include "algorithms/hierarchical.h"
#include "all_ranks.h"
#include "proof/verifier.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <ostream>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace hccl::algorithms {
namespace {

// Tests the binary trees. Both trees must reach every rank and be shallow. A rank other than the
// root must have children in at most one of the trees.

std::vector<Family> tree(std::int32_t rank_count, std::int32_t root, std::uint32_t channel) {
  std::vector<Family> families;
  schedule::Shape shape{.rank_count = rank_count, .root = root, .channel = channel};
  for (shape.rank = 0; shape.rank < rank_count; ++shape.rank)
    families.push_back(family_in_tree(shape));
  return families;
}

void expect_whole(const std::vector<Family>& families, std::int32_t root) {
  const auto at = [&](std::int32_t rank) { return families.at(static_cast<std::size_t>(rank)); };
  const auto count = static_cast<std::int32_t>(families.size());
  for (std::int32_t rank = 0; rank < count; ++rank) {
    EXPECT_EQ(at(rank).parent.has_value(), rank != root);
    EXPECT_LE(at(rank).children.size(), rank == root ? 1U : 2U);
    for (const std::int32_t child : at(rank).children) EXPECT_EQ(at(child).parent, rank);
    int depth = 0;
    for (std::int32_t up = rank; up != root; up = *at(up).parent) ++depth;
    EXPECT_LE(depth, std::bit_width(static_cast<std::uint32_t>(count - 1)));
    if (rank == root) continue;
    const auto siblings = at(*at(rank).parent).children;
    EXPECT_EQ(std::count(siblings.begin(), siblings.end(), rank), 1);
  }
}

TEST(BinaryTree, ReachesEveryRankFromEveryRoot) {
  for (std::int32_t count = 1; count <= 70; ++count) {
    for (std::int32_t root = 0; root < count; ++root) {
      expect_whole(tree(count, root, 0), root);
      expect_whole(tree(count, root, 1), root);
    }
  }
}

TEST(BinaryTree, RanksForwardInOneTreeOnly) {
  for (std::int32_t count = 2; count <= 200; ++count) {
    const std::int32_t root = count / 3;
    const auto first = tree(count, root, 0);
    const auto second = tree(count, root, 1);
    for (std::size_t rank = 0; rank < first.size(); ++rank) {
      if (rank == static_cast<std::size_t>(root)) continue;
      EXPECT_TRUE(first[rank].children.empty() || second[rank].children.empty())
          << rank << " of " << count;
    }
  }
}

}  // namespace

// The tests of the class Catalogue prove every algorithm of the catalogue for many numbers of
// ranks, roots, channels and pipelines, in place and out of place.

void PrintTo(const Algorithm& algorithm, std::ostream* out) {
  *out << algorithm.name << " " << name_of(algorithm.collective);
}

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kThorough = false;  // only a sample of rank counts and roots is tested
#else
constexpr bool kThorough = true;
#endif

bool sampled(std::int32_t rank_count) {
  return kThorough || rank_count <= 17 || rank_count == 32 || rank_count == 61 || rank_count == 128;
}

// Returns the roots to prove: 0 and, for collectives with a root, all other ranks or a sample of
// them.
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

  // Only algorithms with several channels depend on the channel's number.
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
  schedule::Shape shape{.collective = GetParam().collective, .channels = 4};
  const std::int32_t most = kThorough ? 66 : 18;
  for (shape.rank_count = 2; shape.rank_count <= most; ++shape.rank_count) {
    for (const std::uint32_t pipeline : {2U, 7U, 32U}) {
      shape.pipeline = pipeline;
      prove_channels_and_roots(shape);
      if (HasFatalFailure()) return;
    }
  }
}

// Algorithms in `light` and collectives with a root are tested with up to 4096 ranks. All others
// are tested with up to 512, because the number of transfers of most of them grows with the square
// of the number of ranks. Under a sanitizer, 200 ranks suffice.
TEST_P(Catalogue, HoldsForManyRanks) {
  schedule::Shape shape{.collective = GetParam().collective, .pipeline = 4};
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

TEST(CatalogueNames, HaveHierarchicalAlgorithmOverEachAllReduce) {
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

namespace {

// Tests of the hierarchical all-reduce. The first two prove it on nodes of equal and of different
// sizes, with each algorithm across nodes.

using Sizes = std::vector<std::int32_t>;

void prove(const Sizes& sizes, const Algorithm& rails) {
  schedule::Shape shape{.collective = Collective::all_reduce,
                        .rank_count = std::accumulate(sizes.begin(), sizes.end(), 0),
                        .channels = 2,
                        .pipeline = 3};
  for (shape.channel = 0; shape.channel < 2; ++shape.channel) {
    for (const int placement : {0, 1, 2}) {
      shape.in_place = placement == 1;
      const auto build = [&](const Shape& own) {
        return hierarchical_all_reduce(own, sizes, rails);
      };
      const test::AllRanks all = test::build_all(shape, build, placement == 2);
      const auto violation =
          proof::verify(all.shapes, all.schedules, hierarchical_bound(shape, sizes, rails));
      ASSERT_FALSE(violation) << violation->text << "; " << rails.name << " across " << sizes.size()
                              << " nodes; " << test::describe(shape);
    }
  }
}

void prove_over_all_rails(const Sizes& sizes) {
  for (const Algorithm& rails : flat()) {
    if (rails.collective == Collective::all_reduce) prove(sizes, rails);
  }
}

TEST(Hierarchical, HoldsOnEvenNodes) {
  for (const std::size_t nodes : {1U, 2U, 3U, 5U, 8U, 16U}) {
    for (const std::int32_t ranks : {1, 2, 3, 8}) prove_over_all_rails(Sizes(nodes, ranks));
  }
}

TEST(Hierarchical, HoldsOnUnevenNodes) {
  for (const Sizes& sizes :
       {Sizes{1, 3, 4}, Sizes{8, 1}, Sizes{2, 8, 3, 5}, Sizes{4, 4, 4, 3}, Sizes{7, 2, 2, 2, 9}})
    prove_over_all_rails(sizes);
}

// With two ranks per node, there are two rails, each with one rank of every node. Across nodes,
// each rank must send half of the data that it would send in a ring of one rank per node, and only
// to ranks of its own rail.
TEST(Hierarchical, SendsAcrossNodesOnlyOnItsRail) {
  const Sizes sizes = {2, 2, 2};
  schedule::Shape shape{.collective = Collective::all_reduce, .rank = 3, .rank_count = 6};
  const Schedule schedule =
      hierarchical_all_reduce(shape, sizes, *find("ring", Collective::all_reduce));
  double across = 0;
  for (const schedule::Step& step : schedule.steps) {
    for (const auto& send : schedule.sends(step)) {
      if (send.peer / 2 == 1) continue;
      EXPECT_EQ(send.peer % 2, 1);
      across += send.span.chunk_count;
    }
  }
  EXPECT_DOUBLE_EQ(across / schedule.block_chunks, 2.0 * (3 - 1) / 3 / 2);
}

}  // namespace

}  // namespace hccl::algorithms
