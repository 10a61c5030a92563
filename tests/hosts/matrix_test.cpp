// SPDX-License-Identifier: Apache-2.0
// Tests each collective of cases(), with every type, reduction and placement, on hosts against
// exact expected results.
#include "matrix.h"

#include "host_test.h"

#include <ostream>

namespace hccl::test {
namespace {

struct Case {
  Collective collective = Collective::all_reduce;
  std::string layout;  // one letter per rank, which names its host
};

void PrintTo(const Case& value, std::ostream* out) {
  *out << name_of(value.collective) << " on " << value.layout;
}

class OnHosts : public Hosts, public testing::WithParamInterface<Case> {};

TEST_P(OnHosts, MatchThePlanBitwise) {
  const auto& [collective, layout] = GetParam();
  const HostNetwork network(3);
  Nodes nodes;
  for (const char letter : layout) nodes.of_rank.emplace_back(1, letter);
  const auto host_of = [&](int rank) { return layout[static_cast<std::size_t>(rank)] - 'a'; };
  const auto matrix = [&](World& world) {
    move_to(network, host_of(world.rank));
    run_matrix(world, collective, nodes);
  };
  const auto ranks = static_cast<int>(layout.size());
  EXPECT_EQ(failures(run_ranks(ranks, matrix, on_hosts(host_of(0)))), "");
}

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const char* layout : {"aaaabbbb", "bacbccbc"}) {
    for (const Collective collective :
         {Collective::all_reduce, Collective::broadcast, Collective::all_gather,
          Collective::reduce_scatter, Collective::reduce, Collective::all_to_all})
      cases.push_back({collective, layout});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Layouts, OnHosts, testing::ValuesIn(cases()));

}  // namespace
}  // namespace hccl::test
