// SPDX-License-Identifier: Apache-2.0
// Hosts that go, links that are cut, ranks that stop: every rank left gets an error that names who
// is missing, in time.
#include "faults.h"
#include "host_test.h"
#include "session.h"

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include <signal.h>
#include <sys/mman.h>

namespace hccl::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLayout = "aabb";

int host_of(int rank) { return kLayout[rank] - 'a'; }

// How many ranks have come how far, for the test program to see.
class Progress {
 public:
  struct Counts {
    std::atomic<int> reducing{0};  // have ended an all-reduce and go on
    std::atomic<int> failed{0};
  };

  Progress()
      : counts_(new (mmap(nullptr, sizeof *counts_, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Counts) {}
  ~Progress() { munmap(counts_, sizeof *counts_); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  [[nodiscard]] Counts& counts() const { return *counts_; }
  void await_reducing(int ranks) const { await(counts_->reducing, ranks); }
  void await_failed(int ranks) const { await(counts_->failed, ranks); }

 private:
  static void await(const std::atomic<int>& count, int ranks) {
    const auto end = Clock::now() + std::chrono::seconds(60);
    while (count < ranks && Clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  Counts* counts_;
};

// All-reduces until one fails; reports the text of the failure.
RankFunction reduces_until_failure(const HostNetwork& network, const Progress& progress,
                                   std::size_t count) {
  return [&network, &progress, count](World& world) {
    move_to(network, host_of(world.rank));
    Session session(world);
    const Group group = session.join_all();
    synStreamHandle stream = session.make_stream();
    const DeviceMemory memory(session.device(), count * 4);
    void* const data = device_pointer(memory.address());
    const auto reduces = [&] {
      return hcclAllReduce(data, data, count, hcclFloat32, hcclSum, group.handle, stream) ==
                 hcclSuccess &&
             synStreamSynchronize(stream) == synSuccess;
    };
    require(reduces(), last_hccl_message());
    ++progress.counts().reducing;
    while (reduces()) {
    }
    ++progress.counts().failed;
    world.report(hcclCommGetAsyncErrorMessage(group.handle));
    expect_usable_remains(session, group, stream, hcclSystemError);
    session.finish();
  };
}

// Whether the last text that a rank reported names one of `ranks`.
::testing::AssertionResult names_one_of(const RankOutcome& outcome, const std::vector<int>& ranks) {
  const std::string text = outcome.reports.empty() ? "nothing" : outcome.reports.back();
  for (const int rank : ranks) {
    if (names_rank(text, rank)) return ::testing::AssertionSuccess() << text;
  }
  return ::testing::AssertionFailure() << text << "; " << outcome.failure;
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
  const auto outcomes = run_ranks(4, reduces_until_failure(network, progress, GetParam()), options);
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_TRUE(names_one_of(outcomes[0], {2, 3}));
  EXPECT_TRUE(names_one_of(outcomes[1], {2, 3}));
  EXPECT_TRUE(names_one_of(outcomes[2], {0, 1}));
  EXPECT_TRUE(names_one_of(outcomes[3], {0, 1}));
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
  const auto outcomes = run_ranks(4, reduces_until_failure(network, progress, GetParam()), options);
  for (const int rank : {0, 1}) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.failure, "");
    EXPECT_TRUE(names_one_of(outcome, {2, 3}));
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
  const auto outcomes = run_ranks(4, reduces_until_failure(network, progress, GetParam()), options);
  for (const int rank : {2, 3}) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.failure, "");
    EXPECT_TRUE(names_one_of(outcome, {0, 1}));
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
  const auto outcomes = run_ranks(4, reduces_until_failure(network, progress, GetParam()), options);
  EXPECT_EQ(failures(outcomes), "");
  for (const int rank : {0, 1, 2})
    EXPECT_TRUE(names_one_of(outcomes[static_cast<std::size_t>(rank)], {3}));
}

INSTANTIATE_TEST_SUITE_P(Counts, HostFaults, testing::Values(256, 4 << 20));

}  // namespace
}  // namespace hccl::test
