// SPDX-License-Identifier: Apache-2.0
// Tests schedules: how they are built and printed, and the shapes that are their keys.

#include "algorithms/algorithms.h"
#include "schedule/builder.h"
#include "schedule/printer.h"
#include "schedule/shape.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::schedule {
namespace {

// Tests how a builder writes steps.

Shape all_gather_of_three() { return {.collective = Collective::all_gather, .rank_count = 3}; }

TEST(ScheduleBuilder, KnowsBlocksOfCollective) {
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

// Tests how schedules are printed.

Shape third_of_three(Collective collective) {
  return {.collective = collective, .rank = 2, .rank_count = 3};
}

TEST(Printer, WritesRing) {
  const Shape shape = third_of_three(Collective::all_reduce);
  EXPECT_EQ(text_of(shape, algorithms::ring_all_reduce(shape)),
            "all_reduce, rank 2 of 3, root 0, channel 0 of 1: blocks of 3 chunks, 0 in scratch\n"
            "step 0: send input[1] to 0; reduce output[0] with input[0] from 1\n"
            "step 1: send output[0] to 0; reduce output[2] with input[2] from 1\n"
            "step 2: send output[2] to 0; receive output[1] from 1\n"
            "step 3: send output[1] to 0; receive output[0] from 1\n");
}

TEST(Printer, WritesEveryKindOfTransfer) {
  Shape shape = third_of_three(Collective::all_to_all);
  shape.in_place = true;
  ScheduleBuilder builder(shape, 2);
  builder.forward(0, output(2, 2));
  builder.send(1, kSignal);
  builder.receive_reduce(0, output(2, 2), output(2, 2));
  builder.copy(scratch(1, 4, 2), input(4, 2));
  builder.fold(output(0), scratch(0, 0));
  EXPECT_EQ(text_of(shape, std::move(builder).finish()),
            "all_to_all in place, rank 2 of 3, root 0, channel 0 of 1: blocks of 2 chunks, 3 in "
            "scratch\n"
            "step 0: forward output[2-3] to 0; send a signal to 1; reduce output[2-3] from 0; "
            "copy input[4-5] to scratch[1-2]; fold scratch[0] into output[0]\n");
}

TEST(Printer, WritesJson) {
  const Shape shape = third_of_three(Collective::reduce);
  EXPECT_EQ(json_of(shape, algorithms::chain_reduce(shape)),
            R"({"collective":"reduce","in_place":false,"rank":2,"rank_count":3,"root":0,)"
            R"("channel":0,"channels":1,"pipeline":1,"block_chunks":1,"scratch_chunks":0,)"
            R"("steps":[{"sends":[{"peer":1,"span":{"role":"input","first_chunk":0,)"
            R"("chunk_count":1}}],"receives":[]}]})");
  Shape middle = shape;
  middle.rank = 1;
  EXPECT_NE(json_of(middle, algorithms::chain_reduce(middle))
                .find(R"("forward":true}],"receives":[{"peer":2,"span":{"role":"scratch",)"
                      R"("first_chunk":0,"chunk_count":1,"slot":0},"action":"reduce",)"
                      R"("operand":{"role":"input","first_chunk":0,"chunk_count":1}}])"),
            std::string::npos);
}

// Tests how shapes compare and hash, and which buffers a rank has.

TEST(Shape, EveryFieldChangesShapeAndHash) {
  std::vector<Shape> shapes(9);
  shapes[1].collective = Collective::all_reduce;
  shapes[2].in_place = true;
  shapes[3].rank = 1;
  shapes[4].rank_count = 2;
  shapes[5].root = 1;
  shapes[6].channel = 1;
  shapes[7].channels = 2;
  shapes[8].pipeline = 2;
  std::set<std::size_t> hashes;
  for (const Shape& shape : shapes) hashes.insert(std::hash<Shape>()(shape));
  EXPECT_EQ(hashes.size(), shapes.size());
  for (std::size_t i = 1; i < shapes.size(); ++i) EXPECT_NE(shapes[i], shapes[0]);
}

TEST(Shape, OnlyRootHasBroadcastInputAndReduceOutput) {
  Shape shape{.collective = Collective::broadcast, .in_place = true, .rank_count = 3, .root = 1};
  EXPECT_FALSE(shape.has_input() || shape.aliased());
  EXPECT_TRUE(shape.has_output());
  shape.rank = 1;
  EXPECT_TRUE(shape.has_input() && shape.aliased());
  shape.collective = Collective::reduce;
  EXPECT_TRUE(shape.has_output() && shape.aliased());
  shape.rank = 0;
  EXPECT_FALSE(shape.has_output() || shape.aliased());
}

}  // namespace
}  // namespace hccl::schedule
