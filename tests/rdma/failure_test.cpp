// SPDX-License-Identifier: Apache-2.0
// Tests failures and refusals over RDMA devices.

#include "lost_hosts.h"
#include "rdma_test.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include <signal.h>

namespace hccl::test {
namespace {

using Clock = std::chrono::steady_clock;
using Pids = std::vector<pid_t>;

constexpr std::size_t kSmall = 256;
constexpr std::size_t kLarge = 1 << 20;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

// Tests ranks that die or stop, hosts that die, and links that are cut, while all ranks repeatedly
// all-reduce. The parameter is the number of floats per all-reduce. Every rank that still runs must
// get a timely error. Most tests require that the error names a rank which it can no longer reach.
class RdmaFaults : public OnRdmaHosts, public testing::WithParamInterface<std::size_t> {
 protected:
  // Runs the ranks, and calls `fail` with their pids once every rank has completed an all-reduce.
  // Blocks until `survivors` ranks have reported a failure and all ranks have exited.
  void run(const std::string& letters, const std::string& timeout, int survivors,
           const std::function<void(const Pids&)>& fail) {
    const Layout layout{letters};
    RankOptions options = on_hosts_of(layout);
    options.seconds = 60;
    options.environment.emplace_back("HCCL_TIMEOUT", timeout);
    Clock::time_point broken;
    options.meanwhile = [&](const Pids& ranks) {
      progress_.await_reducing(layout.ranks());
      broken = Clock::now();
      fail(ranks);
      progress_.await_failed(survivors);
      std::printf("noticed after %.1f s\n", seconds_since(broken));
    };
    const auto move = [&](int rank) { move_to(layout.host_of(rank)); };
    outcomes_ = run_ranks(
        layout.ranks(),
        reduces_until_failure(move, progress_, GetParam(), {hcclSystemError, hcclPortDown}),
        options);
    std::printf("ended after %.1f s\n", seconds_since(broken));
  }

  // Requires that the rank exited without a test failure and that its error blames one of `others`.
  void expect_blames(int rank, const std::vector<int>& others) const {
    const RankOutcome& outcome = outcomes_.at(static_cast<std::size_t>(rank));
    EXPECT_EQ(outcome.failure, "") << "rank " << rank;
    EXPECT_EQ(blames_none_of(outcome, others), "") << "rank " << rank;
    std::printf("rank %d: %s\n", rank, text_of(rank).c_str());
  }
  [[nodiscard]] std::string text_of(int rank) const {
    const auto& reports = outcomes_.at(static_cast<std::size_t>(rank)).reports;
    return reports.empty() ? "nothing" : reports.back();
  }

  const RdmaHosts hosts_;
  const Progress progress_{};
  std::vector<RankOutcome> outcomes_;
};

TEST_P(RdmaFaults, AKilledRankIsNamedByAll) {
  run("aabb", "60", 3, [](const Pids& ranks) { kill(ranks[3], SIGKILL); });
  for (const int rank : {0, 1, 2}) expect_blames(rank, {3});
}

TEST_P(RdmaFaults, ADeadHostIsNamedByTheOthers) {
  run("aabbc", "60", 3, [](const Pids& ranks) {
    kill(ranks[2], SIGKILL);
    kill(ranks[3], SIGKILL);
  });
  for (const int rank : {0, 1, 4}) expect_blames(rank, {2, 3});
}

TEST_P(RdmaFaults, DeathOfRankZerosHostIsReported) {
  run("aabbc", "60", 3, [](const Pids& ranks) {
    kill(ranks[0], SIGKILL);
    kill(ranks[1], SIGKILL);
  });
  for (const int rank : {2, 3, 4}) expect_blames(rank, {0, 1});
}

// The port of host 1 reports the lost link, so the errors of that host's ranks may name the link
// instead of a rank.
TEST_P(RdmaFaults, ACutLinkFailsBothSides) {
  run("aabb", "5", 4, [&](const Pids&) { hosts_.cut(1); });
  for (const int rank : {0, 1}) expect_blames(rank, {2, 3});
  for (const int rank : {2, 3}) {
    if (!contains(text_of(rank), "rxe1 port 1: the port has lost its link"))
      expect_blames(rank, {0, 1});
  }
}

TEST_P(RdmaFaults, ACutUnseenByPortsFailsBothSides) {
  run("aabb", "5", 4, [&](const Pids&) { hosts_.lose(1, "100%"); });
  for (const int rank : {0, 1}) expect_blames(rank, {2, 3});
  for (const int rank : {2, 3}) expect_blames(rank, {0, 1});
}

TEST_P(RdmaFaults, AStoppedRankIsNamedByAll) {
  run("aabb", "2", 3, [&](const Pids& ranks) {
    kill(ranks[3], SIGSTOP);
    progress_.await_failed(3);
    kill(ranks[3], SIGCONT);
  });
  EXPECT_EQ(failures(outcomes_), "");
  for (const int rank : {0, 1, 2}) expect_blames(rank, {3});
}

INSTANTIATE_TEST_SUITE_P(Counts, RdmaFaults, testing::Values(kSmall, kLarge));

// The devices must give up long before the time limit.
class RdmaFaultsOfSmall : public RdmaFaults {};

TEST_P(RdmaFaultsOfSmall, ACutLinkFailsALongWait) {
  run("ab", "1800", 2, [&](const Pids&) { hosts_.lose(1, "100%"); });
  expect_blames(0, {1});
  expect_blames(1, {0});
}

INSTANTIATE_TEST_SUITE_P(Count, RdmaFaultsOfSmall, testing::Values(kSmall));

class RdmaFaultsOfLarge : public RdmaFaults {};

TEST_P(RdmaFaultsOfLarge, AnInterfaceShutDownFailsBothSides) {
  run("ab", "1800", 2, [&](const Pids&) { hosts_.shut_interface(1); });
  expect_blames(0, {1});
  EXPECT_EQ(failures(outcomes_), "");
  EXPECT_FALSE(contains(text_of(1), "report this")) << text_of(1);
}

// A cut must be harmless if it is shorter than both the library's grace period for a port that is
// down and the time for which the devices retry.
TEST_P(RdmaFaultsOfLarge, ABriefCutIsHarmless) {
  run("ab", "1800", 1, [&](const Pids& ranks) {
    for (int i = 0; i < 2; ++i) {
      hosts_.cut(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      hosts_.mend(1);
      std::this_thread::sleep_for(std::chrono::seconds(2));
    }
    EXPECT_EQ(progress_.counts().failed, 0);
    kill(ranks[1], SIGKILL);
  });
  expect_blames(0, {1});
  EXPECT_TRUE(contains(text_of(0), "has exited") || contains(text_of(0), "closed")) << text_of(0);
}

INSTANTIATE_TEST_SUITE_P(Count, RdmaFaultsOfLarge, testing::Values(kLarge));

// Tests settings and limits under which RoCE cannot work. Creating a communicator must fail with
// advice.
class RdmaRefusals : public OnRdmaHosts {
 protected:
  // Runs two ranks on two hosts. Each rank calls `prepare(rank)` and must then fail to create a
  // communicator. Returns the ranks' error texts.
  static std::vector<std::string> texts_of(const std::function<void(int)>& prepare) {
    const Layout layout{"ab"};
    const auto outcomes = run_ranks(
        layout.ranks(),
        [&](World& world) {
          move_to(layout.host_of(world.rank));
          prepare(world.rank);
          Session session(world);
          hcclUniqueId id{};
          hcclComm_t communicator = nullptr;
          const hcclResult_t result = hcclCommInitRank(&communicator, world.size, id, world.rank);
          require(result != hcclSuccess, "the communicator is refused");
          world.report(last_hccl_message());
          session.finish();
        },
        on_hosts_of(layout));
    EXPECT_EQ(failures(outcomes), "");
    std::vector<std::string> texts;
    for (const RankOutcome& outcome : outcomes) {
      texts.push_back(outcome.reports.empty() ? "nothing" : outcome.reports.front());
      std::printf("%s\n", texts.back().c_str());
    }
    return texts;
  }
};

TEST_F(RdmaRefusals, AnInvalidGidIndexListsTheValidOnes) {
  const auto texts = texts_of([](int) { setenv("HCCL_IB_GID_INDEX", "7", 1); });
  for (const std::string& text : texts) {
    EXPECT_TRUE(contains(text, "HCCL_IB_GID_INDEX=7")) << text;
    EXPECT_TRUE(contains(text, "rxe")) << text;
    EXPECT_TRUE(contains(text, "set it to 1 or 2")) << text;
  }
}

TEST_F(RdmaRefusals, AnInvalidGidIndexIsReportedToThePeer) {
  const auto texts = texts_of([](int rank) {
    if (rank == 1) setenv("HCCL_IB_GID_INDEX", "7", 1);
  });
  EXPECT_TRUE(names_rank(texts.at(0), 1)) << texts.at(0);
  for (const std::string& text : texts) {
    EXPECT_TRUE(contains(text, "HCCL_IB_GID_INDEX=7")) << text;
    EXPECT_TRUE(contains(text, "rxe1")) << text;
    EXPECT_TRUE(contains(text, "set it to 1 or 2")) << text;
  }
}

TEST_F(RdmaRefusals, TheLockedMemoryLimitIsNamed) {
  const auto texts = texts_of([](int) { limit_locked_memory(64 << 10); });
  for (const std::string& text : texts) {
    EXPECT_TRUE(contains(text, "the limit on locked memory is 64 KiB")) << text;
    EXPECT_TRUE(contains(text, "ulimit -l")) << text;
  }
}

}  // namespace
}  // namespace hccl::test
