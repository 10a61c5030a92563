// SPDX-License-Identifier: Apache-2.0
// Floods the root server's port with connections from unknown peers, during and after
// initialisation. The job must continue, and the peers must leave no resource behind.
#include "storm.h"

#include "faults.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr int kStormRanks = 8;
constexpr int kUnknownPeer = kStormRanks;  // the process that is not a rank
constexpr int kSilent = 200;
constexpr int kMalformed = 10'000;
constexpr int kStep = 100;

// Indices of the board's counters.
constexpr int kStarted = 0;
constexpr int kJoined = 1;
constexpr int kOver = 2;

Group group_of(hcclComm_t communicator, int rank) {
  Group group;
  for (int member = 0; member < kStormRanks; ++member) group.members.push_back(member);
  group.rank = rank;
  group.handle = communicator;
  return group;
}

Group join_with(const hcclUniqueId& id, int rank) {
  hcclComm_t communicator = nullptr;
  succeed(hcclCommInitRank(&communicator, kStormRanks, id, rank));
  return group_of(communicator, rank);
}

void expect_works(Session& session, const Group& group) {
  synStreamHandle stream = session.make_stream();
  run_and_verify(session, group, stream, all_reduce_of(10'000));
}

void join_work_and_leave(World& world, Session& session, const hcclUniqueId& id) {
  const Group group = join_with(id, world.rank);
  ++world.board->counter(kJoined);
  expect_works(session, group);
  succeed(hcclCommDestroy(group.handle));
  session.finish();
}

// Returns a text that counts this process's threads, and its descriptors of each kind.
std::string open_resources() {
  std::map<std::string, int> counts;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    std::erase_if(target, [](unsigned char letter) { return std::isdigit(letter) != 0; });
    if (!target.empty()) ++counts[target];
  }
  const auto threads = std::filesystem::directory_iterator("/proc/self/task", ignored);
  counts["threads"] = static_cast<int>(std::distance(begin(threads), end(threads)));
  std::string all;
  for (const auto& [name, count] : counts) all += join(name, ": ", count, "\n");
  return all;
}

// Waits until open_resources() returns the same text for a second, and returns that text.
std::string settled_resources() {
  std::string last;
  for (int same = 0; same < 20;) {
    std::string now = open_resources();
    same = now == last ? same + 1 : 0;
    last.swap(now);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return last;
}

void attack_server(World& world) {
  Storm storm(world.board->await_id(0), kStormRanks, test_seed());
  storm.add_silent(kSilent);
  storm.attack(kStep);
  world.board->counter(kStarted) = 1;
  for (int made = kStep; made < kMalformed || world.board->counter(kJoined) < kStormRanks;
       made += kStep) {
    storm.attack(kStep);
  }
  storm.add_silent(kSilent);
  storm.attack(kMalformed / 10);
  require(storm.all_cut_off(), "connections that the server has not closed");
  world.report(join(storm.failed()));
  world.board->counter(kOver) = 1;
}

void join_in_storm(World& world, bool storm) {
  if (world.rank == kUnknownPeer) {
    if (storm) attack_server(world);
    return;
  }
  Session session(world);
  const hcclUniqueId id = share_id(world);
  if (storm) world.board->await(kStarted, 1);
  const Group group = join_with(id, world.rank);
  ++world.board->counter(kJoined);
  expect_works(session, group);
  if (storm) world.board->await(kOver, 1);
  expect_works(session, group);
  succeed(hcclCommDestroy(group.handle));
  if (world.rank == 0) world.report(settled_resources());
  session.finish();
}

class UnknownPeers : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static RankOptions options() {
    return {.comm_id = GetParam(), .seconds = 120, .capture_stderr = true};
  }
};

TEST_P(UnknownPeers, DelayNoRankAndLeakNothing) {
  const auto run = [](bool storm) {
    return run_ranks(
        kStormRanks + 1, [storm](World& world) { join_in_storm(world, storm); }, options());
  };
  const auto calm = run(false);
  ASSERT_EQ(failures(calm), "");
  const auto stormy = run(true);
  ASSERT_EQ(failures(stormy), "") << "seed " << test_seed();
  ASSERT_EQ(calm[0].reports.size(), 1U);
  ASSERT_EQ(stormy[0].reports.size(), 1U);
  EXPECT_EQ(stormy[0].reports[0], calm[0].reports[0]);
  // With HCCL_COMM_ID, the server closes the port soon after all ranks have joined, so later
  // connections fail.
  if (!GetParam()) {
    EXPECT_EQ(stormy[kUnknownPeer].reports.at(0), "0") << "failed connections";
  }
  const std::string& printed = stormy[0].stderr_text;
  EXPECT_GE(count_of(printed, "rejected a connection from 127.9."), 1U) << printed;
  EXPECT_LE(count_of(printed, "\n"), 100U) << printed;
}

// Leaves rank 0 without a free descriptor until the flood is over. The server must wait and must
// not fill the log.
void join_without_descriptors(World& world) {
  if (world.rank == kUnknownPeer) {
    Storm storm(world.board->await_id(0), kStormRanks, test_seed());
    world.board->await(kStarted, 1);
    storm.add_silent(kSilent);
    storm.attack(kMalformed / 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    world.board->counter(kOver) = 1;
    world.board->await(kJoined, kStormRanks);
    return;
  }
  Session session(world);
  const hcclUniqueId id = share_id(world);
  if (world.rank == 0) {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const int lowest_free = dup(0);
    close(lowest_free);
    rlimit none{static_cast<rlim_t>(lowest_free), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    world.board->counter(kStarted) = 1;
    while (world.board->counter(kOver) == 0) usleep(1000);
    setrlimit(RLIMIT_NOFILE, &before);
  }
  world.board->await(kOver, 1);
  join_work_and_leave(world, session, id);
}

TEST_P(UnknownPeers, AreOutwaitedWhenDescriptorsRunOut) {
  // UBSan uses a pipe to test whether an address is readable, and mistakes a lack of descriptors
  // for an unreadable address.
  if (sanitized()) GTEST_SKIP() << "needs another build: without sanitizers";
  const auto outcomes = run_ranks(kStormRanks + 1, join_without_descriptors, options());
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_EQ(count_of(outcomes[0].stderr_text, "cannot accept connections"), 1U)
      << outcomes[0].stderr_text;
}

// Limits each rank to 100 descriptors. Connections of unknown peers must not use up the descriptors
// that initialisation needs.
void join_with_few_descriptors(World& world) {
  if (world.rank == kUnknownPeer) {
    Storm storm(world.board->await_id(0), kStormRanks, test_seed());
    storm.add_silent(kSilent);
    world.board->counter(kStarted) = 1;
    while (world.board->counter(kJoined) < kStormRanks) storm.attack(kStep);
    return;
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 100;
  setrlimit(RLIMIT_NOFILE, &limit);
  Session session(world);
  const hcclUniqueId id = share_id(world);
  world.board->await(kStarted, 1);
  join_work_and_leave(world, session, id);
}

TEST_P(UnknownPeers, LeaveDescriptorsForTheRanks) {
  EXPECT_EQ(failures(run_ranks(kStormRanks + 1, join_with_few_descriptors, options())), "");
}

// Two processes claim rank 3. The last rank joins after one of them has been refused.
constexpr int kClaimed = 3;
constexpr int kRefused = 4;  // index of a board counter

void claim(World& world) {
  Session session(world);
  const hcclUniqueId id = share_id(world);
  const int rank = world.rank == kUnknownPeer ? kClaimed : world.rank;
  if (rank == kStormRanks - 1) world.board->await(kRefused, 1);
  hcclComm_t communicator = nullptr;
  const hcclResult_t result = hcclCommInitRank(&communicator, kStormRanks, id, rank);
  if (rank == kClaimed && result == hcclInvalidUsage) {
    world.report(last_hccl_message());
    ++world.board->counter(kRefused);
  } else {
    succeed(result);
    expect_works(session, group_of(communicator, rank));
    succeed(hcclCommDestroy(communicator));
  }
  session.finish();
}

TEST_P(UnknownPeers, ThatClaimATakenRankAreRefusedNamingBoth) {
  std::vector<pid_t> pids;
  RankOptions with_pids = options();
  with_pids.meanwhile = [&](const std::vector<pid_t>& all) { pids = all; };
  const auto outcomes = run_ranks(kStormRanks + 1, claim, with_pids);
  ASSERT_EQ(failures(outcomes), "");
  const bool stranger_refused = !outcomes[kUnknownPeer].reports.empty();
  const int refused = stranger_refused ? kUnknownPeer : kClaimed;
  const int first = stranger_refused ? kClaimed : kUnknownPeer;
  ASSERT_EQ(outcomes[static_cast<std::size_t>(first)].reports.size(), 0U);
  ASSERT_EQ(outcomes[static_cast<std::size_t>(refused)].reports.size(), 1U);
  const std::string printed = outcomes[static_cast<std::size_t>(refused)].reports[0];
  const auto pid = [&](int index) { return pids.at(static_cast<std::size_t>(index)); };
  for (const std::string& text : {printed, outcomes[0].stderr_text}) {
    EXPECT_TRUE(contains(text, join("rank 3 is already taken by pid ", pid(first), " on host ")))
        << text;
    EXPECT_TRUE(contains(text, join(" and pid ", pid(refused), " on host "))) << text;
    const std::string claims = text.substr(text.find("rank 3 is already"));
    EXPECT_EQ(count_of(claims, "(unix socket)") + count_of(claims, "(127.0.0.1:"), 2U) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Port, UnknownPeers, testing::Bool(), [](const auto& mode) {
  return mode.param ? std::string("OfCommId") : std::string("OfUniqueId");
});

}  // namespace
}  // namespace hccl::test
