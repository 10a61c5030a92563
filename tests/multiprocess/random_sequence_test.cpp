// SPDX-License-Identifier: Apache-2.0
// Tests random programs on two streams and two communicators, with copies, memsets and events. The
// results must be as if each stream ran its work in order.
#include "operation.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

// A random program that depends only on the seed, because all ranks must issue the same collectives
// on each stream.
class Program {
 public:
  Program(Session& session, const std::array<Group, 2>& groups, unsigned long long seed)
      : session_(session), groups_(groups), random_(seed) {
    for (synStreamHandle& stream : streams_) stream = session.make_stream();
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) one_step();
    synchronize(streams_);
    for (const OperationRun& run : runs_) run.verify();
    for (const Fill& fill : fills_) {
      require(fill.got == fill.expected, "the memset ran before the copy queued after it");
    }
    for (synEventHandle event : events_) {
      succeed(synEventQuery(event));
      succeed(synEventDestroy(event));
    }
  }

 private:
  struct Fill {
    DeviceMemory memory;
    std::vector<std::byte> got;
    std::vector<std::byte> expected;
    Fill(synDeviceId device, std::size_t size) : memory(device, size), got(size), expected(size) {}
  };

  std::size_t pick(std::size_t below) { return random_() % below; }

  void one_step() {
    const std::size_t which = pick(streams_.size());
    synStreamHandle stream = streams_[which];
    switch (pick(12)) {
      case 0:
        succeed(synStreamSynchronize(stream));
        break;
      case 1:
        wait_for_the_other(which);
        break;
      case 2:
        fill(stream);
        break;
      case 3:
        succeed(hcclBarrier(groups_[pick(2)].handle, stream));
        break;
      default:
        collective(stream);
    }
  }

  // Only the second stream waits for the first. Waits in both directions could deadlock, because
  // the streams of one rank may progress differently from those of another between two waits.
  void wait_for_the_other(std::size_t which) {
    if (which == 0) return;
    synEventHandle event = nullptr;
    succeed(synEventCreate(&event, session_.device(), 0));
    events_.push_back(event);
    succeed(synEventRecord(event, streams_[0]));
    succeed(synStreamWaitEvent(streams_[1], event, 0));
  }

  void fill(synStreamHandle stream) {
    const std::size_t size = 1 + pick(5000);
    Fill& fill = fills_.emplace_back(session_.device(), size);
    const std::size_t second = pick(size);
    fill.expected.assign(size, std::byte{0x11});
    std::fill_n(fill.expected.begin(), second, std::byte{0x22});
    succeed(synMemsetD8Async(fill.memory.address(), 0x11, size, stream));
    succeed(synMemsetD8Async(fill.memory.address(), 0x22, second, stream));
    download(stream, fill.memory.address(), fill.got);
  }

  void collective(synStreamHandle stream) {
    constexpr std::array kCollectives{Collective::all_reduce, Collective::broadcast,
                                      Collective::all_gather, Collective::reduce_scatter,
                                      Collective::reduce,     Collective::all_to_all};
    constexpr std::array<std::size_t, 6> kLimits{2, 20, 300, 4'000, 20'000, 60'000};
    const Group& group = groups_[pick(2)];
    Operation operation{.collective = kCollectives[pick(kCollectives.size())],
                        .type = kAllTypes[pick(kAllTypes.size())]};
    const std::vector<hcclRedOp_t> reductions = reductions_of(operation.type);
    operation.reduction = reductions[pick(reductions.size())];
    operation.root = static_cast<int>(pick(groups_[0].members.size()));
    operation.count = pick(kLimits[pick(kLimits.size())]);
    if (operation.collective == Collective::all_to_all) {
      operation.count -= operation.count % groups_[0].members.size();
    }
    operation.in_place = pick(2) != 0;
    operation.offset = pick(40);
    operation.seed = random_();
    OperationRun& run = runs_.emplace_back(session_, group, operation);
    succeed(run.queue(stream));
  }

  Session& session_;
  const std::array<Group, 2>& groups_;
  std::mt19937_64 random_;
  std::array<synStreamHandle, 2> streams_{};
  std::deque<OperationRun> runs_;
  std::deque<Fill> fills_;
  std::vector<synEventHandle> events_;
};

RankFunction programs(unsigned long long seed, int programs_count, int steps) {
  return [=](World& world) {
    Session session(world);
    std::vector<int> backwards;
    for (int rank = world.size - 1; rank >= 0; --rank) backwards.push_back(rank);
    const std::array<Group, 2> groups{session.join_all(0), session.join_members(1, backwards)};
    for (int at = 0; at < programs_count; ++at) {
      Program program(session, groups, seed + static_cast<unsigned long long>(at));
      program.run(steps);
    }
    session.finish();
  };
}

class RandomPrograms : public testing::TestWithParam<int> {};

TEST_P(RandomPrograms, MatchStreamsRunInOrder) {
  const unsigned long long seed = test_seed();
  std::cout << "HCCL_TEST_SEED=" << seed << " repeats this run\n";
  EXPECT_EQ(failures(run_ranks(GetParam(), programs(seed, scaled(4), 60))), "") << "seed " << seed;
}

TEST(RandomPrograms, MatchBetweenThreads) {
  const unsigned long long seed = test_seed();
  std::cout << "HCCL_TEST_SEED=" << seed << " repeats this run\n";
  EXPECT_EQ(failures(run_ranks_as_threads(4, programs(seed, scaled(4), 60))), "")
      << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(Ranks, RandomPrograms, testing::Values(1, 2, 3, 8),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace hccl::test
