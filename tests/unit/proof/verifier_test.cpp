// SPDX-License-Identifier: Apache-2.0
// Tests that the verifier finds violations of each property except Property::same_bits in
// hand-written schedules of two or three ranks.
#include "proof/verifier.h"

#include "schedule/builder.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::proof {
namespace {

using schedule::input;
using schedule::kSignal;
using schedule::output;
using schedule::ScheduleBuilder;
using schedule::scratch;

using Write = std::function<void(ScheduleBuilder&, std::int32_t rank)>;

constexpr Bound kLoose{.steps = 9, .hops = 9, .sent = 9, .received = 9, .peers = 9};

std::optional<Violation> verify_written(Collective collective, std::int32_t rank_count,
                                        std::uint32_t block_chunks, const Write& write,
                                        const Bound& bound = kLoose, bool in_place = false) {
  std::vector<Shape> shapes;
  std::vector<Schedule> schedules;
  Shape shape{.collective = collective, .in_place = in_place, .rank_count = rank_count};
  for (shape.rank = 0; shape.rank < rank_count; ++shape.rank) {
    ScheduleBuilder builder(shape, block_chunks);
    write(builder, shape.rank);
    shapes.push_back(shape);
    schedules.push_back(std::move(builder).finish());
  }
  return verify(shapes, schedules, bound);
}

void expect_violation(const std::optional<Violation>& violation, Property property,
                      const std::string& text) {
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->property, property);
  EXPECT_EQ(violation->text, text);
}

void exchange(ScheduleBuilder& builder, std::int32_t rank) {
  builder.send(1 - rank, input(0));
  builder.receive_reduce(1 - rank, output(0), input(0));
}

TEST(Verifier, AcceptsExchange) {
  EXPECT_FALSE(verify_written(Collective::all_reduce, 2, 1, exchange,
                              {.steps = 1, .hops = 1, .sent = 1, .received = 1, .peers = 1}));
}

TEST(Verifier, RefusesSendsInSeparateStepBeforeReceives) {
  expect_violation(verify_written(Collective::all_reduce, 2, 1,
                                  [](ScheduleBuilder& builder, std::int32_t rank) {
                                    builder.send(1 - rank, input(0));
                                    builder.end_step();
                                    builder.receive_reduce(1 - rank, output(0), input(0));
                                  }),
                   Property::completes,
                   "rank 1, step 0: sends input[0] to rank 0, which never receives it");
}

TEST(Verifier, RefusesRanksThatWaitForEachOthersForward) {
  expect_violation(verify_written(Collective::broadcast, 3, 1,
                                  [](ScheduleBuilder& builder, std::int32_t rank) {
                                    if (rank == 0) return builder.copy(output(0), input(0));
                                    builder.receive(3 - rank, output(0));
                                    builder.forward(3 - rank, output(0));
                                  }),
                   Property::completes,
                   "rank 1, step 0: waits for output[0] from rank 2, which is at its step 0");
}

TEST(Verifier, RefusesMissingOrDuplicateContribution) {
  const char* const text = "rank 0: output[0] does not contain each contribution once";
  expect_violation(verify_written(Collective::all_reduce, 2, 1,
                                  [](ScheduleBuilder& builder, std::int32_t) {
                                    builder.copy(output(0), input(0));
                                  }),
                   Property::exactly_once, text);
  expect_violation(verify_written(Collective::all_reduce, 2, 1,
                                  [](ScheduleBuilder& builder, std::int32_t rank) {
                                    exchange(builder, rank);
                                    builder.fold(output(0), input(0));
                                  }),
                   Property::exactly_once, text);
}

TEST(Verifier, RefusesReadingUnwrittenChunk) {
  expect_violation(verify_written(Collective::all_reduce, 2, 1,
                                  [](ScheduleBuilder& builder, std::int32_t rank) {
                                    builder.send(1 - rank, input(0));
                                    builder.receive_reduce(1 - rank, output(0), output(0));
                                  }),
                   Property::exactly_once,
                   "rank 1, step 0: takes output[0] of rank 1, which has not been written");
}

// Chunk 1 may be shorter than chunk 0.
TEST(Verifier, RefusesChunkStoredAsOneOfOtherLength) {
  expect_violation(verify_written(Collective::broadcast, 2, 2,
                                  [](ScheduleBuilder& builder, std::int32_t rank) {
                                    if (rank == 0) builder.send(1, input(0));
                                    if (rank == 1) builder.receive(0, output(1));
                                  }),
                   Property::exactly_once,
                   "rank 1, step 0: puts chunk 0 (of a block) of rank 0 into output[1] as chunk 1");
}

TEST(Verifier, RefusesOverwritingDataBeingSent) {
  expect_violation(verify_written(Collective::all_reduce, 2, 1, exchange, kLoose, true),
                   Property::no_hazard,
                   "rank 0, step 0: overwrites output[0] while it is sent to rank 1");
}

// Expects a hazard in an all-to-all of two ranks with blocks of two chunks. `write` adds the
// transfers.
void expect_hazard(const Write& write, const std::string& text) {
  expect_violation(verify_written(Collective::all_to_all, 2, 2, write), Property::no_hazard,
                   "rank 0, step 0: " + text);
}

TEST(Verifier, RefusesPartlyOverlappingSpans) {
  expect_hazard(
      [](ScheduleBuilder& builder, std::int32_t) {
        builder.copy(output(0, 2), input(0, 2));
        builder.copy(scratch(0, 1), output(1));
      },
      "reads output[1] while output[0-1] is written");
  expect_hazard(
      [](ScheduleBuilder& builder, std::int32_t) {
        builder.copy(output(0, 2), input(0, 2));
        builder.copy(output(1), input(1));
      },
      "writes output[1] while output[0-1] is written");
  expect_hazard(
      [](ScheduleBuilder& builder, std::int32_t) {
        builder.copy(scratch(0, 0, 2), output(0, 2));
        builder.copy(output(1), input(1));
      },
      "writes output[1] while output[0-1] is read");
}

TEST(Verifier, RefusesForwardingUnreceivedSpan) {
  const char* const text =
      "forwards output[0-1] to rank 1, but no receive of the step writes that span";
  expect_hazard(
      [](ScheduleBuilder& builder, std::int32_t rank) { builder.forward(1 - rank, output(0, 2)); },
      text);
  expect_hazard(
      [](ScheduleBuilder& builder, std::int32_t rank) {
        builder.copy(output(0), input(0));
        builder.forward(1 - rank, output(0, 2));
      },
      text);
}

TEST(Verifier, RefusesTransfersOrOperandsOfDifferentLength) {
  expect_violation(
      verify_written(Collective::all_to_all, 2, 2,
                     [](ScheduleBuilder& builder, std::int32_t rank) {
                       builder.send(1 - rank, input(0, 2));
                       builder.receive(1 - rank, output(0));
                     }),
      Property::completes,
      "rank 1, step 0: receives output[0], but rank 0 sends input[0-1] from its step 0");
  expect_violation(
      verify_written(
          Collective::all_reduce, 2, 2,
          [](ScheduleBuilder& builder, std::int32_t) { builder.copy(output(0), input(1)); }),
      Property::well_formed, "rank 0, step 0: output[0] and input[1] differ in length");
}

TEST(Verifier, RefusesWritingInputOrMissingBuffer) {
  expect_violation(verify_written(Collective::all_reduce, 2, 1,
                                  [](ScheduleBuilder& builder, std::int32_t rank) {
                                    builder.receive(1 - rank, input(0));
                                  }),
                   Property::well_formed, "rank 0, step 0: writes input[0]");
  expect_violation(verify_written(Collective::reduce, 2, 1,
                                  [](ScheduleBuilder& builder, std::int32_t) {
                                    builder.copy(output(0), input(0));
                                  }),
                   Property::well_formed, "rank 1, step 0: output[0] does not exist");
}

TEST(Verifier, RefusesQuantitiesBeyondBounds) {
  const Bound exact{.steps = 1, .hops = 1, .sent = 1, .received = 1, .peers = 1};
  const std::vector<std::pair<double Bound::*, std::string>> quantities = {
      {&Bound::steps, "rank 0: 1 steps, more than the bound of 0.5"},
      {&Bound::hops, "1 hops, more than the bound of 0.5"},
      {&Bound::sent, "rank 0: 1 blocks sent, more than the bound of 0.5"},
      {&Bound::received, "rank 0: 1 blocks received, more than the bound of 0.5"},
      {&Bound::peers, "rank 0: 1 peers, more than the bound of 0.5"}};
  for (const auto& [member, text] : quantities) {
    Bound tight = exact;
    tight.*member = 0.5;
    expect_violation(verify_written(Collective::all_reduce, 2, 1, exchange, tight),
                     Property::within_bound, text);
  }
}

TEST(Verifier, RefusesBarrierThatDoesNotWaitForAll) {
  expect_violation(verify_written(Collective::barrier, 3, 0,
                                  [](ScheduleBuilder& builder, std::int32_t rank) {
                                    builder.send((rank + 1) % 3, kSignal);
                                    builder.receive((rank + 2) % 3, kSignal);
                                  }),
                   Property::exactly_once, "rank 0 leaves the barrier before rank 1 has arrived");
}

}  // namespace
}  // namespace hccl::proof
