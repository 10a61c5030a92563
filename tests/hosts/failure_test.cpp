// SPDX-License-Identifier: Apache-2.0
// Tests hosts that die, links that are cut, and ranks that stop. Every rank that still runs must
// get a timely error that names a rank which it can no longer reach.
#include "faults.h"
#include "host_test.h"
#include "lost_hosts.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>

namespace hccl::test {
namespace {

constexpr const char* kLayout = "aabb";

int host_of(int rank) { return kLayout[rank] - 'a'; }

class HostFaults : public Hosts, public testing::WithParamInterface<std::size_t> {
 protected:
  // Runs four ranks that all-reduce until a call fails. Calls `strike` with their pids once every
  // rank has completed an all-reduce.
  void run(RankOptions options, const std::function<void(const std::vector<pid_t>&)>& strike) {
    network_.emplace(2);
    options.meanwhile = [&](const std::vector<pid_t>& ranks) {
      progress_.await_reducing(4);
      strike(ranks);
    };
    const auto move = [&](int rank) { move_to(*network_, host_of(rank)); };
    outcomes_ = run_ranks(4, reduces_until_failure(move, progress_, GetParam()), options);
  }
  // Requires that each of `ranks` has reported an error that names one of `culprits`.
  void expect_blamed(const std::vector<int>& ranks, const std::vector<int>& culprits) const {
    for (const int rank : ranks) {
      const RankOutcome& outcome = outcomes_[static_cast<std::size_t>(rank)];
      EXPECT_EQ(outcome.failure, "");
      EXPECT_EQ(blames_none_of(outcome, culprits), "");
    }
  }

  std::optional<HostNetwork> network_;
  const Progress progress_{};
  std::vector<RankOutcome> outcomes_;
};

RankOptions within(const std::string& seconds) {
  RankOptions options = on_hosts(0);
  options.environment.emplace_back("HCCL_TIMEOUT", seconds);
  return options;
}

RankOptions without(int victim) {
  RankOptions options = on_hosts(0);
  options.victim = victim;
  return options;
}

TEST_P(HostFaults, CutLinkFailsBothSides) {
  run(within("5"), [&](const std::vector<pid_t>&) { network_->cut(1); });
  expect_blamed({0, 1}, {2, 3});
  expect_blamed({2, 3}, {0, 1});
}

TEST_P(HostFaults, DeadHostIsNamedByTheOther) {
  run(without(2), [](const std::vector<pid_t>& ranks) {
    for (const std::size_t rank : {2U, 3U}) kill(ranks[rank], SIGKILL);
  });
  expect_blamed({0, 1}, {2, 3});
}

TEST_P(HostFaults, DeathOfRankZerosHostIsReported) {
  run(without(0), [](const std::vector<pid_t>& ranks) {
    for (const std::size_t rank : {0U, 1U}) kill(ranks[rank], SIGKILL);
  });
  expect_blamed({2, 3}, {0, 1});
}

TEST_P(HostFaults, StoppedRankIsNamedByAll) {
  run(within(short_timeout()), [&](const std::vector<pid_t>& ranks) {
    kill(ranks[3], SIGSTOP);
    progress_.await_failed(3);
    kill(ranks[3], SIGCONT);
  });
  EXPECT_EQ(failures(outcomes_), "");
  expect_blamed({0, 1, 2}, {3});
}

INSTANTIATE_TEST_SUITE_P(Counts, HostFaults, testing::Values(256, 4 << 20));

}  // namespace
}  // namespace hccl::test
