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
using std::chrono::milliseconds;

constexpr const char* kLayout = "aabb";

int host_of(int rank) { return kLayout[rank] - 'a'; }

void sleep_for(milliseconds duration) { std::this_thread::sleep_for(duration); }

// How many ranks are in their operations, for the test program to see.
class Begun {
 public:
  Begun()
      : count_(new (mmap(nullptr, sizeof *count_, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<int>(0)) {}
  ~Begun() { munmap(count_, sizeof *count_); }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

  void add() const { ++*count_; }
  // Returns when all have been for a while.
  void await(int ranks) const {
    const auto end = Clock::now() + std::chrono::seconds(60);
    while (*count_ < ranks && Clock::now() < end) sleep_for(milliseconds(5));
    sleep_for(milliseconds(300));
  }

 private:
  std::atomic<int>* count_;
};

// All-reduces until one fails; reports the text of the failure.
RankFunction reduces_until_failure(const HostNetwork& network, const Begun& begun,
                                   std::size_t count) {
  return [&network, &begun, count](World& world) {
    move_to(network, host_of(world.rank));
    Session session(world);
    const Group group = session.join_all();
    synStreamHandle stream = session.make_stream();
    const DeviceMemory memory(session.device(), count * 4);
    void* const data = device_pointer(memory.address());
    begun.add();
    synStatus status = synSuccess;
    while (status == synSuccess) {
      if (hcclAllReduce(data, data, count, hcclFloat32, hcclSum, group.handle, stream) !=
          hcclSuccess)
        break;
      status = synStreamSynchronize(stream);
    }
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
  const Begun begun;
  RankOptions options = on_hosts(0);
  options.environment.emplace_back("HCCL_TIMEOUT", "5");
  options.meanwhile = [&](const std::vector<pid_t>&) {
    begun.await(4);
    network.cut(1);
  };
  const auto outcomes = run_ranks(4, reduces_until_failure(network, begun, GetParam()), options);
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_TRUE(names_one_of(outcomes[0], {2, 3}));
  EXPECT_TRUE(names_one_of(outcomes[1], {2, 3}));
  EXPECT_TRUE(names_one_of(outcomes[2], {0, 1}));
  EXPECT_TRUE(names_one_of(outcomes[3], {0, 1}));
}

TEST_P(HostFaults, DeadHostIsNamedByTheOther) {
  const HostNetwork network(2);
  const Begun begun;
  RankOptions options = on_hosts(0);
  options.victim = 2;
  options.meanwhile = [&](const std::vector<pid_t>& ranks) {
    begun.await(4);
    kill(ranks[2], SIGKILL);
    kill(ranks[3], SIGKILL);
  };
  const auto outcomes = run_ranks(4, reduces_until_failure(network, begun, GetParam()), options);
  for (const int rank : {0, 1}) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.failure, "");
    EXPECT_TRUE(names_one_of(outcome, {2, 3}));
  }
}

TEST_P(HostFaults, HostOfRankZeroMayDieToo) {
  const HostNetwork network(2);
  const Begun begun;
  RankOptions options = on_hosts(0);
  options.victim = 0;
  options.meanwhile = [&](const std::vector<pid_t>& ranks) {
    begun.await(4);
    kill(ranks[0], SIGKILL);
    kill(ranks[1], SIGKILL);
  };
  const auto outcomes = run_ranks(4, reduces_until_failure(network, begun, GetParam()), options);
  for (const int rank : {2, 3}) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.failure, "");
    EXPECT_TRUE(names_one_of(outcome, {0, 1}));
  }
}

TEST_P(HostFaults, StoppedRankIsNamedByAll) {
  const HostNetwork network(2);
  const Begun begun;
  RankOptions options = on_hosts(0);
  options.environment.emplace_back("HCCL_TIMEOUT", "2");
  options.meanwhile = [&](const std::vector<pid_t>& ranks) {
    begun.await(4);
    kill(ranks[3], SIGSTOP);
    sleep_for(milliseconds(4000));
    kill(ranks[3], SIGCONT);
  };
  const auto outcomes = run_ranks(4, reduces_until_failure(network, begun, GetParam()), options);
  EXPECT_EQ(failures(outcomes), "");
  for (const int rank : {0, 1, 2})
    EXPECT_TRUE(names_one_of(outcomes[static_cast<std::size_t>(rank)], {3}));
}

INSTANTIATE_TEST_SUITE_P(Counts, HostFaults, testing::Values(256, 4 << 20));

}  // namespace
}  // namespace hccl::test
