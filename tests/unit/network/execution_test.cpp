// SPDX-License-Identifier: Apache-2.0
// Executes every algorithm over streams that take and lend random numbers of bytes. The results
// must match, bit for bit, those that the scalar interpreter computes from the same schedules.
#include "network/execution.h"

#include "algorithms/catalogue.h"
#include "base/error.h"
#include "base/text.h"
#include "elements.h"
#include "interpreter.h"
#include "loose_wires.h"
#include "reduce/reduce.h"
#include "thrown.h"

#include <cstring>

#include <gtest/gtest.h>

namespace hccl::network {
namespace {

using algorithms::Algorithm;
using test::AllRanks;
using test::Words;

constexpr std::uint32_t kAlignment = 16;

using Bytes = std::vector<std::byte>;

struct Case {
  const Algorithm* algorithm = nullptr;
  schedule::Shape shape;  // the shape of rank 0 in channel 0
  std::uint64_t count = 0;
  hcclDataType_t type = hcclFloat32;
  hcclRedOp_t operation = hcclSum;
  bool mixed = false;
  std::uint64_t seed = 1;
};

std::string describe(const Case& of) {
  return text(of.algorithm->name, ' ', test::describe(of.shape), ", ", of.count, ' ',
              reduce::type_name(of.type), of.mixed ? ", mixed" : "");
}

Bytes to_bytes(const std::vector<std::uint64_t>& words, std::size_t size) {
  Bytes bytes(words.size() * size);
  for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(&bytes[i * size], &words[i], size);
  return bytes;
}

// The memory of one rank, poisoned except for the input. In place, input and output overlap.
class Memory {
 public:
  Memory(const Case& of, const schedule::Shape& shape, const Bytes& input) {
    const std::size_t block = of.count * reduce::element_size(of.type);
    const std::size_t own = block * static_cast<std::size_t>(shape.rank);
    const std::size_t out = block * shape.blocks_in_output();
    const std::size_t in = shape.has_input() ? input.size() : 0;
    bytes_.assign(in + out + 1, std::byte{0xA5});
    output_bytes_ = shape.has_output() ? out : 0;
    if (shape.aliased() && input.size() <= out) {
      input_ = input.size() < out ? own : 0;
    } else if (shape.aliased()) {
      output_ = own;
    } else {
      output_ = in;
    }
    if (in != 0) std::memcpy(&bytes_[input_], input.data(), in);
  }
  [[nodiscard]] std::byte* input() { return &bytes_[input_]; }
  [[nodiscard]] std::byte* output() { return &bytes_[output_]; }
  [[nodiscard]] Bytes result() const {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(output_);
    return {begin, begin + static_cast<std::ptrdiff_t>(output_bytes_)};
  }

 private:
  Bytes bytes_;
  std::size_t input_ = 0;
  std::size_t output_ = 0;
  std::size_t output_bytes_ = 0;
};

// The execution of one rank in one channel.
struct Part {
  Part(const Case& of, const schedule::Shape& shape, const schedule::Schedule& schedule,
       Memory& memory, test::LooseWires& wires, const CallHeader& header)
      : chunking(shape, schedule, of.count, kAlignment),
        scratch_bytes(chunking.scratch_elements() * reduce::element_size(of.type) + 1),
        input(memory.input()),
        output(memory.output()),
        scratch(scratch_bytes.data()),
        streams(wires, shape.rank, shape.channel),
        execution(schedule, chunking, {&input, &output, &scratch, of.type, of.operation}, header,
                  shape.rank, streams) {}

  schedule::Chunking chunking;
  Bytes scratch_bytes;
  PlainMemory input, output, scratch;
  test::LooseStreams streams;
  Execution execution;
};

CallHeader header_of(const Case& of) {
  return {.collective = static_cast<std::uint8_t>(of.shape.collective),
          .type = static_cast<std::uint8_t>(of.type),
          .operation = static_cast<std::uint8_t>(of.operation),
          .count = of.count};
}

class Run {
 public:
  Run(const Case& of, const std::vector<AllRanks>& channels, const Words& inputs)
      : wires_(of.seed, 64 + of.seed % 300) {
    const std::size_t size = reduce::element_size(of.type);
    for (std::size_t rank = 0; rank < inputs.size(); ++rank)
      memory_.emplace_back(of, channels[0].shapes[rank], to_bytes(inputs[rank], size));
    for (const AllRanks& channel : channels) {
      for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
        parts_.push_back(std::make_unique<Part>(of, channel.shapes[rank], channel.schedules[rank],
                                                memory_[rank], wires_, header_of(of)));
      }
    }
  }
  // Advances the parts in turn until all are complete. Returns false if they stop making progress,
  // or if bytes are left in the wires.
  bool finish() {
    constexpr int kPatience = 2000;
    for (int idle = 0; idle < kPatience; ++idle) {
      bool complete = true;
      for (const auto& part : parts_) {
        if (part->execution.advance()) idle = 0;
        complete = complete && part->execution.complete();
      }
      if (complete) return wires_.empty();
    }
    return false;
  }
  [[nodiscard]] Bytes result(std::size_t rank) const { return memory_[rank].result(); }

 private:
  test::LooseWires wires_;
  std::deque<Memory> memory_;
  std::vector<std::unique_ptr<Part>> parts_;
};

void check(const Case& of) {
  std::vector<AllRanks> channels;
  schedule::Shape shape = of.shape;
  for (shape.channel = 0; shape.channel < shape.channels; ++shape.channel)
    channels.push_back(test::build_all(shape, of.algorithm->build, of.mixed));
  Words inputs(shape.ranks());
  for (std::int32_t rank = 0; rank < shape.rank_count; ++rank) {
    for (std::uint64_t i = 0; i < of.count * shape.blocks_in_input(); ++i) {
      inputs[static_cast<std::size_t>(rank)].push_back(
          test::element_word(of.type, test::Data::numbers, of.seed, rank, i));
    }
  }
  const Words expected =
      test::interpret(channels, of.type, of.operation, inputs, of.count, kAlignment);
  Run run(of, channels, inputs);
  ASSERT_TRUE(run.finish()) << describe(of);
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    ASSERT_EQ(run.result(rank), to_bytes(expected[rank], reduce::element_size(of.type)))
        << describe(of) << ", rank " << rank;
  }
}

TEST(Execution, GivesBitsOfScheduleForEveryAlgorithm) {
  std::mt19937_64 random(20261121);
  const std::array<hcclDataType_t, 5> types{hcclFloat32, hcclBfloat16, hcclInt8, hcclUint64,
                                            hcclFloat16};
  for (const Algorithm& algorithm : algorithms::flat()) {
    for (const int ranks : {1, 2, 3, 4, 7, 8}) {
      for (int trial = 0; trial < 8; ++trial) {
        Case of;
        of.algorithm = &algorithm;
        of.shape.collective = algorithm.collective;
        of.shape.rank_count = ranks;
        of.shape.root = static_cast<std::int32_t>(random()) & 0x7fff;
        of.shape.root %= of.shape.rank_count;
        of.shape.in_place = trial % 2 == 1;
        of.mixed = trial == 6;
        of.shape.channels = trial < 4 ? 1 : 2;
        of.shape.pipeline = 1 + static_cast<std::uint32_t>(random() % 4);
        of.count = std::array<std::uint64_t, 4>{0, 1, 37, 500}[random() % 4];
        of.type = types[random() % types.size()];
        of.operation = random() % 4 == 0 ? hcclMin : hcclSum;
        of.seed = random();
        check(of);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Rank 1 makes a different call. The first rank that detects the mismatch must report the mismatch,
// and must not take any data.
TEST(Execution, RefusesDifferentCallOfPeer) {
  const schedule::Shape shape{.collective = Collective::all_reduce, .rank_count = 2};
  const auto& build = algorithms::find("ring", Collective::all_reduce)->build;
  const AllRanks all = test::build_all(shape, build);
  Case of;
  of.shape = shape;
  of.count = 64;
  test::LooseWires wires(3, 4096);
  std::deque<Memory> memory;
  for (const auto& own : all.shapes) memory.emplace_back(of, own, Bytes(256, std::byte{1}));
  CallHeader other = header_of(of);
  other.count = 65;
  Part right(of, all.shapes[0], all.schedules[0], memory[0], wires, header_of(of));
  Part wrong(of, all.shapes[1], all.schedules[1], memory[1], wires, other);
  const Bytes before = memory[0].result();
  const std::string error = test::error_of(hcclInvalidUsage, [&] {
    for (int i = 0; i < 1000; ++i) {
      static_cast<void>(wrong.execution.advance());
      static_cast<void>(right.execution.advance());
    }
  });
  EXPECT_NE(error.find("all_reduce(65, float, sum)"), std::string::npos) << error;
  EXPECT_EQ(memory[0].result(), before);
}

// A broadcast of 64 floats to all ranks in one step.
struct Broadcast {
  explicit Broadcast(int ranks)
      : all(test::build_all({.collective = Collective::broadcast, .rank_count = ranks},
                            algorithms::find("direct", Collective::broadcast)->build)) {
    of.shape = {.collective = Collective::broadcast, .rank_count = ranks};
    of.count = 64;
    for (const auto& own : all.shapes) memory.emplace_back(of, own, Bytes(256, std::byte{1}));
  }
  [[nodiscard]] Part part(std::size_t rank) {
    return {of, all.shapes[rank], all.schedules[rank], memory[rank], wires, header_of(of)};
  }

  const AllRanks all;
  Case of;
  std::deque<Memory> memory;
  test::LooseWires wires{3, 4096};
};

// A flushed endpoint ends a wait at once, so it may be waited for only if the next step can begin.
TEST(Execution, WaitsForUnflushedSendsOnly) {
  Broadcast broadcast(3);
  bool all_flushed = false;
  broadcast.wires.is_flushed = [&](int /*from*/, int to) { return to == 1 || all_flushed; };
  Part root = broadcast.part(0);
  for (int i = 0; i < 1000; ++i) static_cast<void>(root.execution.advance());
  ASSERT_TRUE(root.execution.awaited().empty());
  std::vector<transport::WaitSet::Entry> entries;
  root.execution.add_interests(entries);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].endpoint, &root.streams.to(2));
  EXPECT_TRUE(entries[0].interest.flushed);
  all_flushed = true;
  entries.clear();
  root.execution.add_interests(entries);
  EXPECT_EQ(entries.size(), 2U);
  EXPECT_TRUE(root.execution.advance());
  EXPECT_TRUE(root.execution.complete());
}

// A rank that only receives must wait until the peer can no longer write to its buffer.
TEST(Execution, WaitsUntilReceivesAreFlushed) {
  Broadcast broadcast(2);
  bool receiver_flushed = false;
  broadcast.wires.is_flushed = [&](int from, int /*to*/) { return from == 0 || receiver_flushed; };
  Part root = broadcast.part(0);
  Part receiver = broadcast.part(1);
  for (int i = 0; i < 1000; ++i) {
    static_cast<void>(root.execution.advance());
    static_cast<void>(receiver.execution.advance());
  }
  EXPECT_TRUE(root.execution.complete());
  EXPECT_FALSE(receiver.execution.complete());
  std::vector<transport::WaitSet::Entry> entries;
  receiver.execution.add_interests(entries);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_TRUE(entries[0].interest.flushed);
  receiver_flushed = true;
  entries.clear();
  receiver.execution.add_interests(entries);
  ASSERT_EQ(entries.size(), 1U) << "the wait must end";
  EXPECT_TRUE(entries[0].interest.flushed);
  EXPECT_TRUE(receiver.execution.advance());
  EXPECT_TRUE(receiver.execution.complete());
}

}  // namespace
}  // namespace hccl::network
