// SPDX-License-Identifier: Apache-2.0
// Tests how elements are divided among channels and chunks. Each element must be in exactly one
// chunk.
#include "schedule/chunking.h"

#include "schedule/builder.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::schedule {
namespace {

constexpr std::array<std::uint64_t, 14> kCounts = {0,
                                                   1,
                                                   2,
                                                   3,
                                                   7,
                                                   63,
                                                   64,
                                                   65,
                                                   1000,
                                                   4096,
                                                   100'003,
                                                   (1ULL << 32) - 1,
                                                   (1ULL << 32) + 17,
                                                   (1ULL << 45) + 12'345};

void expect_whole_covered_once(std::uint64_t count, std::uint32_t parts, std::uint32_t alignment) {
  const Cut cut(count, parts, alignment);
  EXPECT_EQ(cut.begin(0), 0U);
  EXPECT_EQ(cut.begin(parts), count);
  for (std::uint32_t i = 0; i < parts; ++i) {
    const Elements part = cut.part(i);
    ASSERT_LE(cut.begin(i), cut.begin(i + 1));
    ASSERT_LE(part.count, cut.longest());
    if (part.count == 0) continue;
    ASSERT_EQ(cut.part_of(part.first), i) << count << " in " << parts;
    ASSERT_EQ(cut.part_of(part.first + part.count - 1), i) << count << " in " << parts;
  }
}

TEST(Cut, PartsCoverWholeOnce) {
  for (const std::uint64_t count : kCounts) {
    for (const std::uint32_t parts : {1U, 2U, 3U, 7U, 64U, 1000U, 4096U}) {
      for (const std::uint32_t alignment : {1U, 4U, 16U, 64U})
        expect_whole_covered_once(count, parts, alignment);
    }
  }
}

TEST(Cut, IsBalanced) {
  for (const std::uint64_t count : kCounts) {
    for (const std::uint32_t parts : {1U, 3U, 7U, 64U, 1000U}) {
      const Cut cut(count, parts, 16);
      std::uint64_t shortest = count;
      for (std::uint32_t i = 0; i < parts; ++i) shortest = std::min(shortest, cut.part(i).count);
      EXPECT_LE(cut.longest() - shortest, std::max<std::uint64_t>(shortest / 8, 1))
          << count << " in " << parts;
    }
  }
}

TEST(Cut, IsAlignedIfPartsAreLong) {
  const Cut cut(1'000'000, 7, 16);
  for (std::uint32_t i = 0; i < 7; ++i) EXPECT_EQ(cut.begin(i) % 16, 0U);
  const Cut little(10, 7, 16);
  EXPECT_EQ(little.longest(), 2U);
}

struct Message {
  Shape shape;
  Schedule schedule;
};

Message message(Collective collective, std::uint32_t channels, std::uint32_t block_chunks) {
  Message made;
  made.shape.collective = collective;
  made.shape.rank_count = 5;
  made.shape.channels = channels;
  ScheduleBuilder builder(made.shape, block_chunks);
  builder.copy(scratch(3, 0, block_chunks), input(0, block_chunks));
  made.schedule = std::move(builder).finish();
  return made;
}

// Returns, for each element, how many chunks of this role contain the element, in all channels
// together.
std::vector<int> coverage(Message message, Role role, std::uint64_t count, std::uint64_t buffer) {
  std::vector<int> marks(buffer);
  Shape& shape = message.shape;
  for (shape.channel = 0; shape.channel < shape.channels; ++shape.channel) {
    const Chunking chunking(shape, message.schedule, count, 4);
    const std::uint32_t chunks =
        role == Role::input ? message.schedule.input_chunks : message.schedule.output_chunks;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const Span span{role, chunk, 1, 0};
      for (std::uint64_t at = 0; at < chunking.elements(span);) {
        const Elements run = chunking.run(span, at);
        for (std::uint64_t i = 0; i < run.count; ++i) ++marks.at(run.first + i);
        at += run.count;
      }
    }
  }
  return marks;
}

void expect_buffers_covered_once(const Message& of, std::uint64_t count) {
  for (const Role role : {Role::input, Role::output}) {
    const std::uint64_t blocks =
        role == Role::input ? of.shape.blocks_in_input() : of.shape.blocks_in_output();
    for (const int mark : coverage(of, role, count, count * blocks)) ASSERT_EQ(mark, 1);
  }
}

TEST(Chunking, ChunksOfAllChannelsCoverBufferOnce) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather,
                                      Collective::reduce_scatter, Collective::all_to_all}) {
    for (const std::uint32_t channels : {1U, 2U, 5U}) {
      for (const std::uint32_t chunks : {1U, 3U, 8U}) {
        const Message of = message(collective, channels, chunks);
        for (const std::uint32_t count : {0U, 1U, 2U, 9U, 100U, 1000U})
          expect_buffers_covered_once(of, count);
      }
    }
  }
}

// A span must consist of its chunks' runs in order, even if the chunks are not contiguous.
TEST(Chunking, SpanConsistsOfItsChunksInOrder) {
  std::mt19937 random(5);
  const auto below = [&](std::uint32_t limit) {
    return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const Message of = message(Collective::all_gather, 1 + below(3), 1 + below(4));
    const Chunking chunking(of.shape, of.schedule, below(700), 4);
    const std::uint32_t first = below(of.schedule.output_chunks);
    const std::uint32_t chunks = 1 + below(of.schedule.output_chunks - first);
    std::vector<std::uint64_t> whole;
    std::vector<std::uint64_t> single;
    const auto add = [&](const Span& span, std::vector<std::uint64_t>& to) {
      for (std::uint64_t at = 0; at < chunking.elements(span);) {
        const Elements run = chunking.run(span, at);
        for (std::uint64_t i = 0; i < run.count; ++i) to.push_back(run.first + i);
        at += run.count;
      }
    };
    add(output(first, chunks), whole);
    for (std::uint32_t i = 0; i < chunks; ++i) add(output(first + i), single);
    ASSERT_EQ(whole, single);
    ASSERT_EQ(whole.size(), chunking.elements(scratch(2, first, chunks)));
  }
}

TEST(Chunking, ScratchSlotsHoldAnyChunkAndDoNotOverlap) {
  const Message of = message(Collective::all_reduce, 1, 4);
  const Chunking chunking(of.shape, of.schedule, 10, 1);  // chunks of 3, 3, 2 and 2 elements
  EXPECT_EQ(chunking.scratch_elements(), 7 * 3U);
  EXPECT_EQ(chunking.run(scratch(0, 2), 0), (Elements{0, 2}));
  EXPECT_EQ(chunking.run(scratch(5, 0, 2), 0), (Elements{15, 3}));
  EXPECT_EQ(chunking.run(scratch(5, 0, 2), 4), (Elements{19, 2}));
  EXPECT_EQ(chunking.run(scratch(3, 1, 3), 3), (Elements{12, 2}));
}

TEST(Chunking, SupportsMoreThanFourBillionElements) {
  const std::uint64_t count = (1ULL << 33) + 5;
  const Message of = message(Collective::all_to_all, 1, 2);
  const Chunking chunking(of.shape, of.schedule, count, 16);
  EXPECT_EQ(chunking.elements(input(0, 10)), 5 * count);
  EXPECT_EQ(chunking.run(input(8, 2), 0), (Elements{4 * count, count}));
  const Elements last = chunking.run(input(9), 0);
  EXPECT_EQ(last.first + last.count, 5 * count);
}

}  // namespace
}  // namespace hccl::schedule
