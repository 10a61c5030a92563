// SPDX-License-Identifier: Apache-2.0
// Every collective, type, reduction, placement and size, for 1 to 9 and 16 ranks, against the
// reference on all ranks.
#include "matrix.h"

#include "rank_test.h"

#include <ostream>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

struct Case {
  Collective collective;
  int size;
};

// Prints the parameter for ctest.
void PrintTo(const Case& value, std::ostream* out) {
  *out << name_of(value.collective) << " of " << value.size;
}

class Processes : public testing::TestWithParam<Case> {};
class Threads : public testing::TestWithParam<Case> {};
class Barrier : public testing::TestWithParam<int> {};

RankFunction matrix(Collective collective) {
  return [collective](World& world) { run_matrix(world, collective); };
}

RankOptions patient() { return {.seconds = 150}; }

TEST_P(Processes, GetTheBitsOfTheReference) {
  const auto [collective, size] = GetParam();
  EXPECT_EQ(failures(run_ranks(size, matrix(collective), patient())), "");
}

TEST_P(Threads, GetTheBitsOfTheReference) {
  const auto [collective, size] = GetParam();
  EXPECT_EQ(failures(run_ranks_as_threads(size, matrix(collective), patient())), "");
}

TEST_P(Barrier, HoldsUntilAllHaveCome) {
  EXPECT_EQ(failures(run_ranks(GetParam(), run_barriers, patient())), "");
}

TEST(Barrier, HoldsThreads) {
  EXPECT_EQ(failures(run_ranks_as_threads(4, run_barriers, patient())), "");
}

// The comparison must be able to fail: one rank feeds other data than the others expect.
TEST(Control, OtherDataIsNoticedByEveryRank) {
  const auto unlike = in_session([](RANK_PARAMETERS) {
    const Operation operation{.count = 1, .seed = world.rank == 1 ? 5U : 6U};
    OperationRun run(session, group, operation);
    succeed(run.queue(stream));
    succeed(synStreamSynchronize(stream));
    bool noticed = false;
    try {
      run.verify();
    } catch (const Failure&) {
      noticed = true;
    }
    require(noticed, "a wrong element is not noticed");
  });
  EXPECT_EQ(failures(run_ranks(3, unlike)), "");
}

std::vector<Case> cases(const std::vector<int>& sizes) {
  std::vector<Case> all;
  for (const Collective collective :
       {Collective::all_reduce, Collective::broadcast, Collective::all_gather,
        Collective::reduce_scatter, Collective::reduce, Collective::all_to_all}) {
    for (const int size : sizes) all.push_back({collective, size});
  }
  return all;
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return join(name_of(info.param.collective), "_", info.param.size);
}

INSTANTIATE_TEST_SUITE_P(Matrix, Processes,
                         testing::ValuesIn(cases({1, 2, 3, 4, 5, 6, 7, 8, 9, 16})), name_of_case);
INSTANTIATE_TEST_SUITE_P(Matrix, Threads, testing::ValuesIn(cases({1, 2, 3, 8})), name_of_case);
INSTANTIATE_TEST_SUITE_P(Matrix, Barrier, testing::Values(1, 2, 3, 5, 8, 16),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace hccl::test
