// SPDX-License-Identifier: Apache-2.0
// Steps as they are written down.
#include "schedule/builder.h"

#include <gtest/gtest.h>

namespace hccl::schedule {
namespace {

Shape all_gather_of_three() {
  Shape shape;
  shape.collective = Collective::all_gather;
  shape.rank_count = 3;
  return shape;
}

TEST(ScheduleBuilder, KnowsTheBlocksOfTheCollective) {
  const Schedule schedule = ScheduleBuilder(all_gather_of_three(), 4).finish();
  EXPECT_EQ(schedule.block_chunks, 4U);
  EXPECT_EQ(schedule.input_chunks, 4U);
  EXPECT_EQ(schedule.output_chunks, 12U);
}

TEST(ScheduleBuilder, PutsSendsBeforeReceivesAndKeepsTheirOrder) {
  ScheduleBuilder builder(all_gather_of_three(), 1);
  builder.receive(1, output(1));
  builder.send(2, input(0));
  builder.receive_reduce(2, scratch(4, 1), output(1));
  builder.forward(1, output(1));
  const Schedule schedule = std::move(builder).finish();
  ASSERT_EQ(schedule.steps.size(), 1U);
  const auto sends = schedule.sends(schedule.steps[0]);
  const auto receives = schedule.receives(schedule.steps[0]);
  ASSERT_EQ(sends.size(), 2U);
  ASSERT_EQ(receives.size(), 2U);
  EXPECT_FALSE(sends[0].forward);
  EXPECT_TRUE(sends[1].forward);
  EXPECT_EQ(receives[0].span, output(1));
  EXPECT_EQ(receives[1].action, Action::reduce);
  EXPECT_EQ(schedule.scratch_chunks, 5U);
}

TEST(ScheduleBuilder, MakesNoEmptySteps) {
  ScheduleBuilder builder(all_gather_of_three(), 1);
  builder.end_step();
  builder.copy(output(0), input(0));
  builder.end_step();
  builder.end_step();
  EXPECT_EQ(std::move(builder).finish().steps.size(), 1U);
}

}  // namespace
}  // namespace hccl::schedule
