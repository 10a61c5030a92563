// SPDX-License-Identifier: Apache-2.0
// Tests printed schedules.
#include "schedule/printer.h"

#include "algorithms/algorithms.h"
#include "schedule/builder.h"

#include <gtest/gtest.h>

namespace hccl::schedule {
namespace {

Shape third_of_three(Collective collective) {
  Shape shape;
  shape.collective = collective;
  shape.rank_count = 3;
  shape.rank = 2;
  return shape;
}

TEST(Printer, WritesARing) {
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

}  // namespace
}  // namespace hccl::schedule
