// SPDX-License-Identifier: Apache-2.0
// Ranks that reach each other over verbs: every collective, type, reduction and placement against
// the plan's own bits. An emulated processor takes long to interpret the plan of many ranks: these
// run a sample, another one each time.
#include "matrix.h"

#include "rdma_test.h"

#include <algorithm>
#include <ostream>

namespace hccl::test {
namespace {

struct MatrixCase {
  std::string layout;
  std::string algorithm;
  int stride;  // one of `stride` operations is run
};

void PrintTo(const MatrixCase& value, std::ostream* out) {
  *out << value.layout << ' ' << value.algorithm;
}

std::vector<Operation> sample_of(const MatrixCase& of, const Nodes& nodes) {
  const auto stride = static_cast<std::size_t>(std::max(1.0, of.stride / test_scale()));
  std::size_t next = test_seed() % stride;
  std::vector<Operation> sample;
  for (const Collective collective :
       {Collective::all_reduce, Collective::broadcast, Collective::all_gather,
        Collective::reduce_scatter, Collective::reduce, Collective::all_to_all}) {
    if (!of.algorithm.empty() && !traits(collective).reduces) continue;
    const auto all = matrix_of(collective, static_cast<int>(of.layout.size()), nodes);
    for (; next < all.size(); next += stride) sample.push_back(all[next]);
    next -= all.size();
  }
  return sample;
}

class OverVerbs : public OnRdmaHosts, public testing::WithParamInterface<MatrixCase> {};

TEST_P(OverVerbs, GetTheBitsOfThePlan) {
  SCOPED_TRACE(random_seed_text());
  const MatrixCase& of = GetParam();
  const Layout layout{of.layout};
  const RdmaHosts hosts;
  Nodes nodes;
  for (const char letter : of.layout) nodes.of_rank.emplace_back(1, letter);
  nodes.algorithm = of.algorithm;
  const std::vector<Operation> operations = sample_of(of, nodes);
  RankOptions options = on_hosts_of(layout);
  if (!of.algorithm.empty()) options.environment.emplace_back("HCCL_ALGO", of.algorithm);
  const auto matrix = [&](World& world) {
    move_to(layout.host_of(world.rank));
    const VerbsProof proof(world, layout);
    run_operations(world, operations, [&](const Group& group) { proof.report(group); });
  };
  const auto outcomes = run_ranks(layout.ranks(), matrix, options);
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_GT(VerbsProof::bytes_moved(outcomes), 0U);
  std::printf("%zu operations\n", operations.size());
}

// Strides that share no divisor with the numbers of types, placements and counts, which so all take
// turns.
INSTANTIATE_TEST_SUITE_P(Layouts, OverVerbs,
                         testing::Values(MatrixCase{"ab", "", 1}, MatrixCase{"aabb", "", 3},
                                         MatrixCase{"aaaabbbb", "", 11}, MatrixCase{"abcd", "", 11},
                                         MatrixCase{"aaaabbbbccccdddd", "", 43},
                                         MatrixCase{"aab", "", 3}, MatrixCase{"dbacdbdd", "", 13}));
INSTANTIATE_TEST_SUITE_P(
    Forced, OverVerbs,
    testing::Values(MatrixCase{"aabb", "ring", 11}, MatrixCase{"aabb", "tree", 11},
                    MatrixCase{"aabb", "hierarchical", 11}, MatrixCase{"abcd", "ring", 11},
                    MatrixCase{"abcd", "tree", 11}, MatrixCase{"abbccc", "hierarchical", 11}));

}  // namespace
}  // namespace hccl::test
