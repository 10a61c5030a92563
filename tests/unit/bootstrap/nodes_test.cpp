// SPDX-License-Identifier: Apache-2.0
// Joins ranks that are threads of one process, and ranks that are processes on several nodes.

#include "bootstrap/control_link.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/join.h"
#include "bootstrap/rendezvous_client.h"
#include "bootstrap/root_server.h"
#include "bootstrap/server_registry.h"
#include "bootstrap/shared_secret.h"
#include "joining_ranks.h"
#include "loopback_test.h"
#include "processes.h"

#include <csignal>
#include <future>
#include <memory>
#include <utility>

namespace hccl::bootstrap::test {
namespace {

// Tests ranks that are threads of one process. They must be able to join several communicators, and
// errors must name the ranks at fault.

class Join : public LoopbackTest {};

TEST_F(Join, TwoThreadsExchangeAllData) {
  expect_all_joined(join_as_threads(create_unique_id(), 2));
}

TEST_F(Join, SixteenThreadsExchangeAllData) {
  expect_all_joined(join_as_threads(create_unique_id(), 16));
}

TEST_F(Join, SingleRankJoinsAlone) {
  hcclUniqueId id = create_unique_id();
  const RankTable table = join(
      id, 1, 0, contribution_of(0),
      [](int) -> FileDescriptor { throw Error(hcclInternalError, "not needed"); },
      Deadline::never());
  ASSERT_EQ(table.members.size(), 1U);
  EXPECT_EQ(value_in(table.members[0].memory), 1000);
  EXPECT_FALSE(table.control.valid());
  retire_unique_id(id);
}

TEST_F(Join, SeveralCommunicatorsJoinConcurrently) {
  constexpr int kCommunicators = 6;
  std::vector<hcclUniqueId> ids;
  ids.reserve(kCommunicators);
  for (int i = 0; i < kCommunicators; ++i) ids.push_back(create_unique_id());
  std::vector<std::vector<Ending>> endings(kCommunicators);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kCommunicators; ++i) {
    threads.emplace_back(
        [&, i] { endings[i] = join_as_threads(ids[i], 2 + static_cast<int>(i) % 3); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : endings) expect_all_joined(one);
}

TEST_F(Join, TimeoutNamesMissingRanks) {
  const hcclUniqueId id = create_unique_id();
  std::vector<Ending> endings(6);
  std::vector<std::thread> threads;
  for (const int rank : {0, 1, 2, 4}) {
    threads.emplace_back([&, rank] {
      endings[static_cast<std::size_t>(rank)] =
          try_join(id, 6, rank, std::chrono::milliseconds(400));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::size_t rank : {0U, 1U, 2U, 4U}) {
    EXPECT_EQ(endings[rank].code, hcclInternalError);
    EXPECT_NE(endings[rank].text.find("ranks 3,5 have not joined"), std::string::npos)
        << endings[rank].text;
  }
}

void wait_for_control_thread() {
  std::promise<void> idle;
  ControlThread::instance().post([&] { idle.set_value(); });
  idle.get_future().wait();
}

TEST_F(Join, ServerWaitsForFailureReasonOfItsOwnRank) {
  const UniqueId id = decode(create_unique_id());
  const auto hello = [](int rank) { return hello_of(rank, 2); };
  RendezvousClient own(id, JoinKey(id), hello(0), Deadline::after(kPatience));
  RendezvousClient other(id, JoinKey(id), hello(1), Deadline::after(kPatience));
  own.join([] { return std::string(); });
  other.join([] { return std::string(); });
  static_cast<void>(other.wait_for_table());
  const auto server = ServerRegistry::instance().find(id);
  auto known = std::async(std::launch::async, [&] { server->wait_until_all_know(kPatience); });
  EXPECT_EQ(known.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  wait_for_control_thread();
  EXPECT_EQ(known.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);

  own.leave({hcclSystemError, "the reason of rank 0"});
  ASSERT_EQ(known.wait_for(kPatience / 2), std::future_status::ready);
  try {
    static_cast<void>(other.finish({}));
    ADD_FAILURE() << "rank 1 has not received the failure";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the reason of rank 0"), std::string::npos)
        << error.what();
  }
  server->stop();
}

// Tests ranks that are processes on several nodes. Each rank must get the right data from the
// others, and must be notified when another rank ends.

// The node of each rank.
using Nodes = std::vector<std::string>;

int ranks_on(const Nodes& nodes, const std::string& node) {
  return static_cast<int>(std::ranges::count(nodes, node));
}

std::string table_error_across(const Nodes& nodes, const RankTable& table, int rank) {
  const auto& node_of = [&](int which) { return nodes[static_cast<std::size_t>(which)]; };
  if (table.members.size() != nodes.size()) return "wrong number of members";
  if (value_in(table.control) != -ranks_on(nodes, node_of(rank))) return "wrong control block";
  for (const RankInfo& member : table.members) {
    const Contribution expected = contribution_of(member.rank);
    const bool here = node_of(member.rank) == node_of(rank);
    if (member.announced != expected.announce({}))
      return text("wrong announcement of ", member.rank);
    if ((member.node == table.members[static_cast<std::size_t>(rank)].node) != here)
      return text("wrong node of ", member.rank);
    if (member.blob != (here ? expected.blob : Bytes())) return text("wrong blob of ", member.rank);
    if (member.memory.valid() != here) return text("wrong memory of ", member.rank);
    if (member.process.valid() != (here && member.rank != rank))
      return text("wrong pidfd of ", member.rank);
  }
  return table.link.connection.socket.valid() ? "" : "no link";
}

// Ranks that are processes on several nodes. They join, and then carry out the test's orders.
class SeveralNodes : public testing::Test {
 protected:
  enum Stage : int { joined = 1, fault_reported, first_verdict, second_verdict };
  enum Order : int { raise_fault = 1, leave, ask, answer_idle, answer_waiting };

  void start(const Nodes& nodes, const std::vector<int>& order) {
    size_ = static_cast<int>(nodes.size());
    const int port = free_port();
    for (const int rank : order) {
      const std::map<std::string, std::string> environment{
          {"HCCL_COMM_ID", text("127.0.0.1:", port)},
          {"HCCL_NODE_ID", nodes[static_cast<std::size_t>(rank)]}};
      processes_.start(rank, environment,
                       [=, this](Report& report) { take_part(report, nodes, rank); });
    }
    for (int rank = 0; rank < size_; ++rank) {
      EXPECT_TRUE(wait_until([&] { return processes_.report(rank).stage >= joined; }))
          << "rank " << rank << ": " << processes_.text(rank);
      EXPECT_EQ(processes_.text(rank), "") << "rank " << rank;
    }
  }
  void order(int rank, Order what) { orders_[rank] = what; }
  // Waits until a fault has been reported to the rank, and returns the fault's text.
  std::string await_fault(int rank) {
    EXPECT_TRUE(wait_until([&] { return processes_.report(rank).stage == fault_reported; }))
        << rank;
    return processes_.text(rank);
  }
  // Waits for the answer to ask_who_is_missing().
  std::string await_verdict(int rank, Stage which) {
    EXPECT_TRUE(wait_until([&] { return processes_.report(rank).stage == which; })) << rank;
    return processes_.text(rank);
  }
  bool has_fault(int rank) { return processes_.report(rank).stage == fault_reported; }
  Processes& processes() { return processes_; }
  [[nodiscard]] int size() const { return size_; }

 private:
  void take_part(Report& report, const Nodes& nodes, int rank) {
    const hcclUniqueId id = resolve_unique_id(rank == 0 ? create_unique_id() : hcclUniqueId{});
    Ending ending = try_join(id, size_, rank);
    std::string wrong = ending.text;
    if (ending.code == hcclSuccess) wrong = table_error_across(nodes, ending.table, rank);
    write_report(report, ending.code, wrong);
    report.stage = joined;
    if (!wrong.empty()) return;
    std::atomic<bool> asked{false};
    bool has_verdict = false;
    ControlLink::Callbacks callbacks;
    callbacks.fault = [&](hcclResult_t code, const std::string& what) {
      write_report(report, code, what);
      report.stage = fault_reported;
    };
    callbacks.inquiry = [&] { asked = true; };
    callbacks.verdict = [&](const std::string& root_cause) {
      write_report(report, hcclSuccess, root_cause);
      report.stage = std::exchange(has_verdict, true) ? second_verdict : first_verdict;
    };
    auto link = std::make_unique<ControlLink>(std::move(ending.table.link), std::move(callbacks));
    static_cast<void>(wait_until([&] { return orders_[rank] != 0; }));
    const int order = orders_[rank];
    if (order == raise_fault)
      link->raise(hcclInvalidUsage, [] { return std::string("a wrong sum"); });
    const Waiting barrier{"op 0 of stream 0", "barrier()", "ring", {(rank + 1) % size_}};
    if (order == ask) link->ask_who_is_missing(barrier);
    if (order == ask || order == answer_idle || order == answer_waiting) {
      static_cast<void>(wait_until([&] { return asked.load(); }));
      link->answer(order == answer_idle ? Waiting{} : barrier);
    }
    static_cast<void>(wait_until([&] { return orders_[rank] == leave; }));
    link.reset();
    if (rank == 0) retire_unique_id(id);
  }

  Processes processes_;
  int size_ = 0;
  std::atomic<int>* const orders_ =
      new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          std::atomic<int>[32];
};

TEST_F(SeveralNodes, RanksGetDataOfNodeAndAnnouncementsOfAll) {
  start({"b", "a", "c", "b", "c", "c", "b", "c"}, {5, 0, 7, 3, 1, 2, 6, 4});
  for (int rank = 0; rank < size(); ++rank) order(rank, leave);
  for (int rank = 0; rank < size(); ++rank) {
    EXPECT_TRUE(processes().finished(rank)) << rank;
    EXPECT_FALSE(has_fault(rank)) << rank << ": " << processes().text(rank);
  }
}

TEST_F(SeveralNodes, FaultReachesAllRanks) {
  start({"a", "a", "b", "c"}, {0, 1, 2, 3});
  order(2, raise_fault);
  for (const int rank : {0, 1, 3}) EXPECT_EQ(await_fault(rank), "a wrong sum");
}

TEST_F(SeveralNodes, DeathIsReportedToAllByName) {
  start({"a", "b", "b", "c"}, {0, 1, 2, 3});
  const std::string victim = text("rank 3 (pid ", processes().pid(3), ", host ");
  processes().kill(3);
  for (const int rank : {0, 1, 2})
    EXPECT_EQ(await_fault(rank).find(victim), 0U) << processes().text(rank);
}

TEST_F(SeveralNodes, DeathOfWholeNodeIsNamed) {
  start({"a", "b", "b", "b"}, {0, 1, 2, 3});
  for (const int rank : {1, 2, 3}) processes().kill(rank);
  EXPECT_EQ(await_fault(0).find("ranks 1-3 (host "), 0U) << processes().text(0);
}

TEST_F(SeveralNodes, DeathOfServersProcessIsReportedToAll) {
  start({"a", "a", "b"}, {0, 1, 2});
  const std::string server = text("rank 0 (pid ", processes().pid(0), ", host ");
  processes().kill(0);
  for (const int rank : {1, 2})
    EXPECT_EQ(await_fault(rank).find(server), 0U) << processes().text(rank);
}

// Rank 0 waits for rank 1, which waits for rank 2, which is in no call. Rank 1 does not answer
// before the first verdict, as if it got no CPU time.
TEST_F(SeveralNodes, LateAnswerCorrectsTheVerdict) {
  start({"a", "b", "c"}, {0, 1, 2});
  order(2, answer_idle);
  order(0, ask);
  EXPECT_EQ(await_verdict(0, first_verdict).find("rank 1 "), 0U) << processes().text(0);
  order(1, answer_waiting);
  EXPECT_EQ(await_verdict(0, second_verdict).find("rank 2 "), 0U) << processes().text(0);
}

TEST_F(SeveralNodes, LeavingIsNoFault) {
  start({"a", "b", "b"}, {0, 1, 2});
  for (const int rank : {0, 1}) {
    order(rank, leave);
    EXPECT_TRUE(processes().finished(rank));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_FALSE(has_fault(2)) << processes().text(2);
}

TEST_F(SeveralNodes, StoppedProcessIsNoFault) {
  start({"a", "b"}, {0, 1});
  kill(processes().pid(1), SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_FALSE(has_fault(0)) << processes().text(0);
  kill(processes().pid(1), SIGCONT);
  for (const int rank : {0, 1}) order(rank, leave);
  for (const int rank : {0, 1}) EXPECT_TRUE(processes().finished(rank));
}

}  // namespace
}  // namespace hccl::bootstrap::test
