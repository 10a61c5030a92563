// SPDX-License-Identifier: Apache-2.0
// Tests collectives over blocks of different sizes: random layouts with gaps, in any order and in
// place, alone and in groups, and ranks whose counts disagree.
#include "elements.h"
#include "rank_test.h"
#include "session.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>
#include <hccl_emulation.h>

namespace hccl::test {
namespace {

constexpr std::size_t kGuard = 72;
constexpr std::byte kPoison{0xA5};

using Counts = std::vector<std::uint64_t>;

// A buffer in device or host memory, with guard bytes before and after the data.
class Buffer {
 public:
  Buffer(const Session& session, std::size_t bytes, bool on_host)
      : memory_(session.device(), bytes + 2 * kGuard),
        expected_(bytes + 2 * kGuard, kPoison),
        on_host_(on_host) {}

  // Sets an element's initial value. Unless expect() changes the value, it is also the expected
  // final value.
  void put(hcclDataType_t type, std::size_t index, std::uint64_t word) {
    store_word(type, expected_.data() + kGuard + index * size_of(type), word);
  }
  void upload_to(synStreamHandle stream) {
    actual_ = expected_;
    if (!on_host_) upload(stream, actual_, memory_.address());
  }
  void expect(hcclDataType_t type, std::size_t index, std::uint64_t word) {
    put(type, index, word);
  }
  [[nodiscard]] void* at(std::size_t byte = 0) {
    return on_host_ ? actual_.data() + kGuard + byte
                    : device_pointer(memory_.address() + kGuard + byte);
  }
  void verify(synStreamHandle stream, const std::string& what) {
    if (!on_host_) download(stream, memory_.address(), actual_);
    succeed(synStreamSynchronize(stream));
    const auto [got, want] = std::mismatch(actual_.begin(), actual_.end(), expected_.begin());
    require(got == actual_.end(),
            join(what, ": byte ", got - actual_.begin(), " of ", actual_.size(), " differs"));
  }

 private:
  DeviceMemory memory_;
  std::vector<std::byte> expected_, actual_;
  bool on_host_;
};

// The counts and displacements of the blocks.
struct Shape {
  Counts counts, displacements;
  bool implied = false;  // blocks are contiguous and in order; displacements are passed as null

  [[nodiscard]] const std::uint64_t* displacements_or_null() const {
    return implied ? nullptr : displacements.data();
  }
  [[nodiscard]] std::size_t extent() const {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      end = std::max(end, displacements[i] + counts[i]);
    return end;
  }
};

class Randomness {
 public:
  explicit Randomness(std::uint64_t seed) : engine_(seed) {}

  [[nodiscard]] std::size_t below(std::size_t end) { return engine_() % end; }
  [[nodiscard]] Counts counts(int ranks) {
    constexpr std::array<std::size_t, 5> kLimits{2, 40, 700, 20'000, 90'000};
    const std::size_t limit = kLimits[below(kLimits.size())];
    Counts counts;
    for (int rank = 0; rank < ranks; ++rank) counts.push_back(below(4) == 0 ? 0 : below(limit));
    return counts;
  }
  // Returns a shape whose blocks are in random order with gaps, or contiguous and in order.
  [[nodiscard]] Shape shape(Counts counts) {
    Shape shape{std::move(counts), {}, below(3) == 0};
    std::vector<std::size_t> order(shape.counts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!shape.implied) std::ranges::shuffle(order, engine_);
    shape.displacements.resize(order.size());
    std::uint64_t next = 0;
    for (const std::size_t block : order) {
      if (!shape.implied) next += below(50);
      shape.displacements[block] = next;
      next += shape.counts[block];
    }
    return shape;
  }

 private:
  std::mt19937_64 engine_;
};

struct Context {
  Session& session;
  const Group& group;
  synStreamHandle stream;
  std::uint64_t seed;  // the same on all ranks
  Randomness own;      // differs between ranks

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(group.rank); }
  [[nodiscard]] int host() { return static_cast<int>(own.below(3) == 0); }
  // Returns element `index` of the block that rank `from` sends to rank `to`.
  [[nodiscard]] std::uint64_t word(hcclDataType_t type, std::size_t from, std::size_t to,
                                   std::size_t index) const {
    return element_word(type, Data::bits, seed * 64 + to, static_cast<int>(from), index);
  }
};

void gather(Context& context) {
  Randomness common(context.seed);
  const hcclDataType_t type = kAllTypes[common.below(kAllTypes.size())];
  const Shape shape = context.own.shape(common.counts(context.group.size()));
  const std::size_t rank = context.rank();
  const bool in_place = context.own.below(3) == 0;
  Buffer send(context.session, shape.counts[rank] * size_of(type), context.host() != 0);
  Buffer recv(context.session, shape.extent() * size_of(type), context.host() != 0);
  const std::size_t mine = shape.displacements[rank];
  for (std::size_t i = 0; i < shape.counts[rank]; ++i) {
    const std::uint64_t word = context.word(type, rank, 0, i);
    in_place ? recv.put(type, mine + i, word) : send.put(type, i, word);
  }
  send.upload_to(context.stream);
  recv.upload_to(context.stream);
  for (std::size_t from = 0; from < shape.counts.size(); ++from) {
    for (std::size_t i = 0; i < shape.counts[from]; ++i)
      recv.expect(type, shape.displacements[from] + i, context.word(type, from, 0, i));
  }
  succeed(hcclEmulationAllGatherV(in_place ? recv.at(mine * size_of(type)) : send.at(), recv.at(),
                                  shape.counts.data(), shape.displacements_or_null(), type,
                                  context.group.handle, context.stream));
  succeed(synStreamSynchronize(context.stream));
  send.verify(context.stream, "what was sent");
  recv.verify(context.stream, join("all-gather of ", name_of(type), in_place ? " in place" : ""));
}

// Reduces integers, because their results do not depend on the order of reduction between nodes.
void scatter(Context& context) {
  Randomness common(context.seed);
  const hcclDataType_t type = kAllTypes[common.below(6)];
  const auto reductions = reductions_of(type);
  const hcclRedOp_t op = reductions[common.below(reductions.size())];
  const Shape shape = context.own.shape(common.counts(context.group.size()));
  const std::size_t rank = context.rank();
  const bool in_place = context.own.below(3) == 0;
  Buffer send(context.session, shape.extent() * size_of(type), context.host() != 0);
  Buffer recv(context.session, shape.counts[rank] * size_of(type), context.host() != 0);
  const std::size_t mine = shape.displacements[rank];
  for (std::size_t to = 0; to < shape.counts.size(); ++to) {
    for (std::size_t i = 0; i < shape.counts[to]; ++i)
      send.put(type, shape.displacements[to] + i, context.word(type, rank, to, i));
  }
  send.upload_to(context.stream);
  recv.upload_to(context.stream);
  for (std::size_t i = 0; i < shape.counts[rank]; ++i) {
    std::vector<std::uint64_t> words;
    for (std::size_t from = 0; from < shape.counts.size(); ++from)
      words.push_back(context.word(type, from, rank, i));
    const std::uint64_t word = fold(type, op, words);
    in_place ? send.expect(type, mine + i, word) : recv.expect(type, i, word);
  }
  succeed(hcclEmulationReduceScatterV(
      send.at(), in_place ? send.at(mine * size_of(type)) : recv.at(), shape.counts.data(),
      shape.displacements_or_null(), type, op, context.group.handle, context.stream));
  succeed(synStreamSynchronize(context.stream));
  const std::string what = join("reduce-scatter of ", name_of(type), ' ', name_of(op));
  send.verify(context.stream, what + ", what was sent");
  recv.verify(context.stream, what);
}

// Exchanges blocks, alone or in a group with an all-reduce on the same stream.
void exchange(Context& context, bool grouped) {
  Randomness common(context.seed);
  const hcclDataType_t type = kAllTypes[common.below(kAllTypes.size())];
  const std::size_t rank = context.rank();
  Counts to_others, from_others;
  for (int from = 0; from < context.group.size(); ++from) {
    const Counts counts = common.counts(context.group.size());
    if (from == context.group.rank) to_others = counts;
    from_others.push_back(counts[rank]);
  }
  const Shape sent = context.own.shape(std::move(to_others));
  const Shape received = context.own.shape(std::move(from_others));
  Buffer send(context.session, sent.extent() * size_of(type), context.host() != 0);
  Buffer recv(context.session, received.extent() * size_of(type), context.host() != 0);
  Buffer reduced(context.session, 100, false);
  for (std::size_t to = 0; to < sent.counts.size(); ++to) {
    for (std::size_t i = 0; i < sent.counts[to]; ++i)
      send.put(type, sent.displacements[to] + i, context.word(type, rank, to, i));
  }
  for (std::size_t i = 0; i < 100; ++i) reduced.put(hcclUint8, i, i);
  for (Buffer* buffer : {&send, &recv, &reduced}) buffer->upload_to(context.stream);
  for (std::size_t from = 0; from < received.counts.size(); ++from) {
    for (std::size_t i = 0; i < received.counts[from]; ++i)
      recv.expect(type, received.displacements[from] + i, context.word(type, from, rank, i));
  }
  if (grouped) succeed(hcclGroupStart());
  succeed(hcclEmulationAlltoAllV(send.at(), sent.counts.data(), sent.displacements_or_null(),
                                 recv.at(), received.counts.data(),
                                 received.displacements_or_null(), type, context.group.handle,
                                 context.stream));
  if (grouped) {
    succeed(hcclAllReduce(reduced.at(), reduced.at(), 100, hcclUint8, hcclMax, context.group.handle,
                          context.stream));
    succeed(hcclGroupEnd());
  }
  succeed(synStreamSynchronize(context.stream));
  send.verify(context.stream, "what was sent");
  recv.verify(context.stream, join("all-to-all of ", name_of(type), grouped ? " in a group" : ""));
  reduced.verify(context.stream, "the all-reduce of the group");
}

RankFunction random_calls(unsigned long long seed, int rounds) {
  return in_session([=](RANK_PARAMETERS) {
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t common = seed + static_cast<unsigned>(round);
      Context context{session, group, stream, common,
                      Randomness(common * 1000 + static_cast<unsigned>(group.rank))};
      gather(context);
      scatter(context);
      exchange(context, round % 2 == 0);
    }
  });
}

TEST(VariableBlocks, ArriveAtTheirOffsets) {
  const unsigned long long seed = test_seed();
  for (const int ranks : {1, 2, 3, 4})
    EXPECT_EQ(failures(run_ranks(ranks, random_calls(seed, scaled(15)))), "")
        << "HCCL_TEST_SEED=" << seed;
}

TEST(VariableBlocks, ArriveBetweenThreads) {
  const unsigned long long seed = test_seed();
  EXPECT_EQ(failures(run_ranks_as_threads(4, random_calls(seed, 10))), "")
      << "HCCL_TEST_SEED=" << seed;
}

enum class Call { gather, scatter, exchange };

// Returns a rank function in which the count of one block differs on rank 1.
RankFunction differ(Call call, std::size_t block, bool to_zero) {
  return in_session([=](RANK_PARAMETERS) {
    constexpr std::size_t kMost = 5000;
    const DeviceMemory send(session.device(), 8 * kMost), recv(session.device(), 8 * kMost);
    void* const from = send.pointer();
    void* const to = recv.pointer();
    const Counts usual(static_cast<std::size_t>(world.size), 1000);
    Counts counts = usual;
    if (group.rank == 1) counts.at(block) = to_zero ? 0 : 1001;
    const auto queue = [&] {
      if (call == Call::gather)
        return hcclEmulationAllGatherV(from, to, counts.data(), nullptr, hcclInt8, group.handle,
                                       stream);
      if (call == Call::scatter)
        return hcclEmulationReduceScatterV(from, to, counts.data(), nullptr, hcclInt8, hcclSum,
                                           group.handle, stream);
      return hcclEmulationAlltoAllV(from, usual.data(), nullptr, to, counts.data(), nullptr,
                                    hcclInt8, group.handle, stream);
    };
    // The error may reach a rank before its call; the call is then refused.
    if (queue() == hcclSuccess && group.rank == 1)
      expect_code(synStreamSynchronize(stream), synFailHccl);
    hcclResult_t fault = hcclSuccess;
    for (int tries = 0; fault == hcclSuccess && tries < 1000; ++tries) {
      succeed(hcclCommGetAsyncError(group.handle, &fault));
      if (fault == hcclSuccess) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    expect_code(fault, hcclInvalidUsage);
    require(contains(async_message(group.handle), to_zero ? "(0, int8" : "1001"),
            async_message(group.handle));
    world.board->barrier(0, world.size);
  });
}

class UnlikeCounts : public testing::TestWithParam<std::tuple<Call, std::size_t, bool>> {};

TEST_P(UnlikeCounts, FailAllRanks) {
  const auto [call, block, to_zero] = GetParam();
  EXPECT_EQ(failures(run_ranks(3, differ(call, block, to_zero))), "");
}

INSTANTIATE_TEST_SUITE_P(VariableBlocks, UnlikeCounts,
                         testing::Combine(testing::Values(Call::gather, Call::scatter,
                                                          Call::exchange),
                                          testing::Values(0U, 2U), testing::Bool()));

}  // namespace
}  // namespace hccl::test
