// SPDX-License-Identifier: Apache-2.0
// Hundreds of calls in the queue at once, each reading what earlier ones stored, and one
// synchronise at the end: the results are those of one call after the other.
#include "session.h"

#include <array>
#include <cmath>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

constexpr std::size_t kBuffers = 5;
constexpr std::size_t kCalls = 400;
constexpr std::array<std::size_t, 6> kCounts{1, 3, 100, 260, 261, 3'000};
constexpr std::size_t kLength = 3'000;

struct Step {
  std::size_t count = 0;
  std::size_t from = 0, to = 0;
  int root = -1;  // a broadcast; else an all-reduce of minima, which stay in range however often
};

std::vector<Step> random_steps(std::mt19937_64& random, int ranks) {
  std::vector<Step> steps(kCalls);
  for (Step& step : steps) {
    step = {kCounts[random() % kCounts.size()], random() % kBuffers, random() % kBuffers, -1};
    if (random() % 4 == 0) step.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
  }
  return steps;
}

using Buffers = std::vector<std::vector<float>>;

Buffers random_buffers(unsigned long long seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> values(-1000.0F, 1000.0F);
  Buffers buffers(kBuffers, std::vector<float>(kLength));
  for (auto& buffer : buffers) {
    for (float& value : buffer) value = values(random);
  }
  return buffers;
}

void apply(const Step& step, std::vector<Buffers>& ranks) {
  for (std::size_t at = 0; at < step.count; ++at) {
    float result = ranks[0][step.from][at];
    for (const Buffers& rank : ranks) result = std::fmin(result, rank[step.from][at]);
    if (step.root >= 0) result = ranks[static_cast<std::size_t>(step.root)][step.from][at];
    for (Buffers& rank : ranks) rank[step.to][at] = result;
  }
}

// One stream's program, with buffers of its own.
class Burst {
 public:
  Burst(Session& session, const Group& group, unsigned long long seed)
      : group_(group), stream_(session.make_stream()) {
    std::mt19937_64 random(seed);
    steps_ = random_steps(random, group.size());
    for (int rank = 0; rank < group.size(); ++rank) {
      expected_.push_back(random_buffers(seed + 1 + static_cast<unsigned>(rank)));
    }
    for (const auto& values : expected_[static_cast<std::size_t>(group.rank)]) {
      std::vector<std::byte>& bytes = host_.emplace_back(kLength * sizeof(float));
      std::memcpy(bytes.data(), values.data(), bytes.size());
      memory_.push_back(std::make_unique<DeviceMemory>(session.device(), bytes.size()));
      upload(stream_, bytes, memory_.back()->address());
    }
    succeed(synStreamSynchronize(stream_));
  }

  void queue() {
    for (const Step& step : steps_) {
      void* from = device_pointer(memory_[step.from]->address());
      void* to = device_pointer(memory_[step.to]->address());
      succeed(
          step.root >= 0
              ? hcclBroadcast(from, to, step.count, hcclFloat32, step.root, group_.handle, stream_)
              : hcclAllReduce(from, to, step.count, hcclFloat32, hcclMin, group_.handle, stream_));
    }
  }

  void verify() {
    for (const Step& step : steps_) apply(step, expected_);
    for (std::size_t buffer = 0; buffer < kBuffers; ++buffer)
      download(stream_, memory_[buffer]->address(), host_[buffer]);
    succeed(synStreamSynchronize(stream_));
    for (std::size_t buffer = 0; buffer < kBuffers; ++buffer) {
      const auto& expected = expected_[static_cast<std::size_t>(group_.rank)][buffer];
      require(std::memcmp(host_[buffer].data(), expected.data(), host_[buffer].size()) == 0,
              "a buffer is what one call after the other gives");
    }
  }

 private:
  const Group& group_;
  synStreamHandle stream_;
  std::vector<Step> steps_;
  std::vector<Buffers> expected_;
  std::vector<std::vector<std::byte>> host_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
};

RankFunction bursts(unsigned long long seed, int rounds) {
  return [=](World& world) {
    Session session(world);
    const std::array<Group, 2> groups{session.join_all(0), session.join_all(1)};
    for (int round = 0; round < rounds; ++round) {
      const unsigned long long start = seed + 1000ull * static_cast<unsigned>(round);
      Burst first(session, groups[0], start);
      Burst second(session, groups[0], start + 100);
      Burst third(session, groups[1], start + 200);
      first.queue();
      second.queue();
      third.queue();
      third.verify();
      first.verify();
      second.verify();
    }
    session.finish();
  };
}

class Bursts : public testing::TestWithParam<int> {};

TEST_P(Bursts, OfDependentCallsGiveWhatOneAfterTheOtherGives) {
  const unsigned long long seed = test_seed();
  std::cout << "HCCL_TEST_SEED=" << seed << " repeats this run\n";
  EXPECT_EQ(failures(run_ranks(GetParam(), bursts(seed, scaled(3)))), "") << "seed " << seed;
}

TEST(Bursts, RunAmongThreads) {
  const unsigned long long seed = test_seed();
  std::cout << "HCCL_TEST_SEED=" << seed << " repeats this run\n";
  EXPECT_EQ(failures(run_ranks_as_threads(4, bursts(seed, scaled(2)))), "") << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(Ranks, Bursts, testing::Values(2, 3, 8),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace hccl::test
