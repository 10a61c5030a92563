// SPDX-License-Identifier: Apache-2.0
// What the table chooses, what can be forced, and that schedules are built once.
#include "planner/planner.h"

#include "base/error.h"
#include "planner/schedule_cache.h"

#include <string>

#include <gtest/gtest.h>

namespace hccl::planner {
namespace {

using schedule::Collective;

TEST(Plan, HasAnAlgorithmForEveryCollectiveAndSize) {
  for (int number = 0; number <= static_cast<int>(Collective::point_to_point); ++number) {
    const auto collective = static_cast<Collective>(number);
    for (const std::uint64_t bytes :
         {std::uint64_t{0}, std::uint64_t{1} << 20, ~std::uint64_t{0}}) {
      for (const int ranks : {1, 2, 3, 4096}) {
        const Plan plan = make_plan(collective, bytes, ranks, "");
        ASSERT_NE(plan.algorithm, nullptr) << schedule::name_of(collective);
        EXPECT_EQ(plan.algorithm->collective, collective);
        EXPECT_GE(plan.pipeline, 1U);
      }
    }
  }
}

TEST(Plan, OfLargeMessagesSpendsAsLittleDataAsCanBe) {
  EXPECT_EQ(make_plan(Collective::all_reduce, 64 << 20, 8, "").algorithm->name, "ring");
  EXPECT_EQ(make_plan(Collective::all_reduce, 64, 8, "").algorithm->name, "halving_doubling");
}

TEST(Plan, CanBeForcedWhereTheAlgorithmHasTheCollective) {
  const Plan tree = make_plan(Collective::all_reduce, 16 << 20, 8, "tree");
  EXPECT_EQ(tree.algorithm->name, "tree");
  EXPECT_EQ(tree.channels, 2U);
  EXPECT_EQ(tree.pipeline, 64U);
  EXPECT_EQ(make_plan(Collective::all_to_all, 64, 8, "tree").algorithm->name, "pairwise");
}

TEST(Plan, RefusesANameThatThereIsNotAndNamesThoseThereAre) {
  EXPECT_NO_THROW(check_algorithm(""));
  EXPECT_NO_THROW(check_algorithm("ring"));
  try {
    check_algorithm("rign");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), hcclInvalidArgument);
    EXPECT_STREQ(error.what(),
                 "HCCL_ALGO='rign' is no algorithm; set it to one of ring, tree, chain, "
                 "halving_doubling, direct, one_shot, pairwise");
  }
}

TEST(ScheduleCache, KeepsASchedulePerAlgorithmAndShape) {
  ScheduleCache cache;
  schedule::Shape shape;
  shape.collective = Collective::all_reduce;
  shape.rank_count = 5;
  const auto& ring = *algorithms::find("ring", Collective::all_reduce);
  const auto& direct = *algorithms::find("direct", Collective::all_reduce);
  const schedule::Schedule& first = cache.get(ring, shape);
  EXPECT_EQ(first, ring.build(shape));
  EXPECT_EQ(&cache.get(ring, shape), &first);
  EXPECT_NE(&cache.get(direct, shape), &first);
  shape.rank = 1;
  EXPECT_EQ(cache.get(ring, shape), ring.build(shape));
}

}  // namespace
}  // namespace hccl::planner
