// SPDX-License-Identifier: Apache-2.0
// Hosts that go, links that are cut, ranks that stop: every rank left gets an error that names who
// is missing, in time.
#include "host_test.h"
#include "lost_hosts.h"

#include <signal.h>

namespace hccl::test {
namespace {

constexpr const char* kLayout = "aabb";

int host_of(int rank) { return kLayout[rank] - 'a'; }

RankFunction reduces_on_hosts(const HostNetwork& network, const Progress& progress,
                              std::size_t count) {
  return reduces_until_failure([&network](int rank) { move_to(network, host_of(rank)); }, progress,
                               count);
}

class HostFaults : public Hosts, public testing::WithParamInterface<std::size_t> {};

TEST_P(HostFaults, CutLinkIsAnErrorOnBothSides) {
  const HostNetwork network(2);
  const Progress progress;
  RankOptions options = on_hosts(0);
  options.environment.emplace_back("HCCL_TIMEOUT", "5");
  options.meanwhile = [&](const std::vector<pid_t>&) {
    progress.await_reducing(4);
    network.cut(1);
  };
  const auto outcomes = run_ranks(4, reduces_on_hosts(network, progress, GetParam()), options);
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_EQ(blames_none_of(outcomes[0], {2, 3}), "");
  EXPECT_EQ(blames_none_of(outcomes[1], {2, 3}), "");
  EXPECT_EQ(blames_none_of(outcomes[2], {0, 1}), "");
  EXPECT_EQ(blames_none_of(outcomes[3], {0, 1}), "");
}

TEST_P(HostFaults, DeadHostIsNamedByTheOther) {
  const HostNetwork network(2);
  const Progress progress;
  RankOptions options = on_hosts(0);
  options.victim = 2;
  options.meanwhile = [&](const std::vector<pid_t>& ranks) {
    progress.await_reducing(4);
    kill(ranks[2], SIGKILL);
    kill(ranks[3], SIGKILL);
  };
  const auto outcomes = run_ranks(4, reduces_on_hosts(network, progress, GetParam()), options);
  for (const int rank : {0, 1}) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.failure, "");
    EXPECT_EQ(blames_none_of(outcome, {2, 3}), "");
  }
}

TEST_P(HostFaults, HostOfRankZeroMayDieToo) {
  const HostNetwork network(2);
  const Progress progress;
  RankOptions options = on_hosts(0);
  options.victim = 0;
  options.meanwhile = [&](const std::vector<pid_t>& ranks) {
    progress.await_reducing(4);
    kill(ranks[0], SIGKILL);
    kill(ranks[1], SIGKILL);
  };
  const auto outcomes = run_ranks(4, reduces_on_hosts(network, progress, GetParam()), options);
  for (const int rank : {2, 3}) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.failure, "");
    EXPECT_EQ(blames_none_of(outcome, {0, 1}), "");
  }
}

TEST_P(HostFaults, StoppedRankIsNamedByAll) {
  const HostNetwork network(2);
  const Progress progress;
  RankOptions options = on_hosts(0);
  options.environment.emplace_back("HCCL_TIMEOUT", "2");
  options.meanwhile = [&](const std::vector<pid_t>& ranks) {
    progress.await_reducing(4);
    kill(ranks[3], SIGSTOP);
    progress.await_failed(3);
    kill(ranks[3], SIGCONT);
  };
  const auto outcomes = run_ranks(4, reduces_on_hosts(network, progress, GetParam()), options);
  EXPECT_EQ(failures(outcomes), "");
  for (const int rank : {0, 1, 2})
    EXPECT_EQ(blames_none_of(outcomes[static_cast<std::size_t>(rank)], {3}), "");
}

INSTANTIATE_TEST_SUITE_P(Counts, HostFaults, testing::Values(256, 4 << 20));

}  // namespace
}  // namespace hccl::test
