// SPDX-License-Identifier: Apache-2.0
// Tests streams that are opened by many ranks at once, by several threads of one rank, and by ranks
// that are threads of one process. Also tests endpoints that cannot be opened.
#include "harness.h"

#include <exception>
#include <thread>

namespace hccl::test {
namespace {

class Opening : public EveryWay {};

INSTANTIATE_TEST_SUITE_P(All, Opening, testing::ValuesIn(all_ways()), name_of);

template <class Function>
std::string failure_of(Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void use_channel(Member& member, int rank, std::uint32_t number) {
  const auto endpoint = member.open(1 - rank, {number, 0});
  const std::uint64_t stream = 2 * std::uint64_t{number};
  const auto own = static_cast<std::uint64_t>(rank);
  Mover().eager_to_sleep().run({{endpoint.get(), stream + own, 100'000}},
                               {{endpoint.get(), stream + 1 - own, 100'000}});
}

TEST_P(Opening, ManyRanksConnectConcurrently) {
  run(8, [](World& world) {
    Member member(world, GetParam());
    std::vector<std::unique_ptr<Endpoint>> endpoints;
    std::vector<Sending> sends;
    std::vector<Receiving> receives;
    const auto add = [&](int peer, std::uint32_t channel) {
      const auto stream = [&](int from, int to) {
        return static_cast<std::uint64_t>((from * world.size + to) * 2) + channel;
      };
      endpoints.push_back(member.open(peer, {0, channel}));
      sends.push_back({endpoints.back().get(), stream(world.rank, peer), 50'000});
      receives.push_back({endpoints.back().get(), stream(peer, world.rank), 50'000});
    };
    for (int peer = 0; peer < world.size; ++peer) {
      if (peer == world.rank) continue;
      add(peer, 0);
      add(peer, 1);
    }
    Mover().run(sends, receives);
    world.board->barrier(0, world.size);
  });
}

TEST_P(Opening, ThreadsOfARankShareItsListener) {
  run(2, [](World& world) {
    Member member(world, GetParam());
    std::vector<std::string> failures(6);
    std::vector<std::thread> threads;
    const auto body = [&](std::uint32_t number) {
      failures[number] = failure_of([&] { use_channel(member, world.rank, number); });
    };
    for (std::uint32_t i = 0; i < failures.size(); ++i) threads.emplace_back(body, i);
    for (std::thread& thread : threads) thread.join();
    for (const std::string& failure : failures) require_equal(failure, "", "the failure");
    world.board->barrier(0, 2);
  });
}

TEST_P(Opening, RanksMayBeThreadsOfOneProcess) {
  const auto outcomes = run_ranks_as_threads(4, [](World& world) {
    Member member(world, GetParam());
    std::vector<std::unique_ptr<Endpoint>> endpoints;
    std::vector<Sending> sends;
    std::vector<Receiving> receives;
    for (int peer = 0; peer < world.size; ++peer) {
      if (peer == world.rank) continue;
      endpoints.push_back(member.open(peer));
      sends.push_back({endpoints.back().get(), static_cast<std::uint64_t>(world.rank), 500'000});
      receives.push_back({endpoints.back().get(), static_cast<std::uint64_t>(peer), 500'000});
    }
    Mover().run(sends, receives);
    world.board->barrier(0, world.size);
  });
  EXPECT_EQ(failures(outcomes), "");
}

TEST_P(Opening, InvalidEndpointsAreRefused) {
  const auto transport = make_transport(GetParam(), settings_for(1, 2, GetParam()));
  const Bytes own = transport->address();
  EXPECT_TRUE(transport->reach(own).possible);
  const auto first = transport->open(0, {}, own);
  EXPECT_THROW(static_cast<void>(transport->open(0, {}, own)), Error);
  EXPECT_THROW(static_cast<void>(transport->open(1, {}, own)), Error);
  EXPECT_THROW(static_cast<void>(transport->open(2, {}, own)), Error);
  const Bytes malformed(own.begin(), own.end() - 1);
  EXPECT_FALSE(transport->reach(malformed).possible);
  EXPECT_TRUE(contains(transport->reach(malformed).why_not, "malformed"));
  const auto connector = make_transport(GetParam(), settings_for(0, 2, GetParam()));
  EXPECT_THROW(static_cast<void>(connector->open(1, {}, malformed)), Error);
}

TEST(Reach, SharedMemoryDoesNotCrossNodes) {
  const Way way{"shm", "shm"};
  transport::Settings settings = settings_for(1, 2, way);
  const auto here = make_transport(way, settings);
  settings.node += " elsewhere";
  const auto there = make_transport(way, settings);
  EXPECT_FALSE(here->reach(there->address()).possible);
  EXPECT_FALSE(there->reach(here->address()).possible);
  EXPECT_TRUE(contains(here->reach(there->address()).why_not, "another node"));
}

}  // namespace
}  // namespace hccl::test
