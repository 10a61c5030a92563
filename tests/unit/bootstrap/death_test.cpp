// SPDX-License-Identifier: Apache-2.0
// Kills a rank during initialisation, with and without a child process that keeps the rank's
// descriptors open. The error of every other rank must name the victim.
#include "base/secret.h"
#include "bootstrap/join.h"
#include "bootstrap/messages.h"
#include "bootstrap/node_exchange.h"
#include "bootstrap/node_socket.h"
#include "bootstrap/rendezvous_client.h"
#include "bootstrap/server_registry.h"
#include "bootstrap/shared_secret.h"
#include "joining_ranks.h"
#include "processes.h"

#include <random>

namespace hccl::bootstrap::test {
namespace {

enum class Child { none, forked, raw };

class Death : public testing::TestWithParam<Child> {
 protected:
  void leave_child(Processes& processes) const {
    if (GetParam() != Child::none) processes.leave_child(GetParam() == Child::raw);
  }

  // Returns the unique id that all ranks use. The rank with `maker` set creates the id, and the
  // other ranks wait for it.
  static hcclUniqueId shared_id(Board& board, bool maker) {
    if (maker) {
      board.id = create_unique_id();
      board.has_id = true;
    }
    wait_until([&] { return board.has_id.load(); });
    return board.id;
  }

  static void start_survivor(Processes& processes, int rank, int size, bool maker) {
    processes.start(rank, {}, [&processes, rank, size, maker](Report& report) {
      Board& board = processes.board();
      const hcclUniqueId id = shared_id(board, maker);
      const Ending ending = try_join(id, size, rank);
      write_report(report, ending.code, ending.text);
      report.stage = 1;
      // The maker stays alive, because its server reports the failure to ranks that join late.
      if (maker) wait_until([&] { return board.stage == 1; });
    });
  }

  // Starts a rank that stops joining at `stage` (1: the server has accepted the rank, 2: all ranks
  // have joined) and kills itself once the board's stage is not negative.
  void start_victim(Processes& processes, int rank, int size, int stage, bool maker) {
    processes.start(rank, {}, [=, this, &processes](Report& report) {
      const UniqueId id = decode(shared_id(processes.board(), maker));
      const Hello hello = hello_of(rank, size);
      const FileDescriptor listener = listen_on_node(hello.node_socket);
      RendezvousClient client(id, JoinKey(id), hello, Deadline::after(kPatience));
      client.join([] { return std::string(); });
      report.stage = 1;
      if (stage == 2) static_cast<void>(client.wait_for_table());
      wait_until([&] { return processes.board().stage >= 0; });
      leave_child(processes);
      raise(SIGKILL);
    });
  }

  // Joins, reports stage 1, and waits for the table of all ranks.
  static void wait_for_others(Board& board, int rank, int size, Report& report) {
    const UniqueId id = decode(shared_id(board, false));
    const Hello hello = hello_of(rank, size);
    const FileDescriptor listener = listen_on_node(hello.node_socket);
    RendezvousClient client(id, JoinKey(id), hello, Deadline::after(kPatience));
    client.join([] { return std::string(); });
    report.stage = 1;
    static_cast<void>(client.wait_for_table());
  }

  static void expect_named(Processes& processes, int rank, const std::string& victim) {
    processes.expect_reported(rank, hcclSystemError, "exited during initialisation");
    EXPECT_EQ(processes.text(rank).find(victim), 0U) << processes.text(rank);
  }
};

TEST_P(Death, WhileRanksAreMissingIsNamed) {
  Processes processes;
  start_survivor(processes, 0, 5, true);
  start_survivor(processes, 1, 5, false);
  start_victim(processes, 3, 5, 1, false);
  const std::string victim = text("rank 3 (pid ", processes.pid(3), ",");
  ASSERT_TRUE(wait_until([&] { return processes.report(0).stage == 1; }));
  ASSERT_TRUE(processes.finished(1));
  // A rank that starts late must get the error, too.
  start_survivor(processes, 4, 5, false);
  ASSERT_TRUE(processes.finished(4));
  processes.board().stage = 1;
  ASSERT_TRUE(processes.finished(0));
  for (const int rank : {0, 1, 4}) expect_named(processes, rank, victim);
}

TEST_P(Death, InExchangeIsNamed) {
  Processes processes;
  start_survivor(processes, 0, 4, true);
  start_survivor(processes, 1, 4, false);
  start_survivor(processes, 2, 4, false);
  start_victim(processes, 3, 4, 2, false);
  const std::string victim = text("rank 3 (pid ", processes.pid(3), ",");
  processes.board().stage = 1;
  for (const int rank : {0, 1, 2}) expect_named(processes, rank, victim);
}

TEST_P(Death, OfLeaderIsNamed) {
  Processes processes;
  start_victim(processes, 0, 3, 2, false);
  start_survivor(processes, 1, 3, true);
  start_survivor(processes, 2, 3, false);
  const std::string victim = text("rank 0 (pid ", processes.pid(0), ",");
  processes.board().stage = 1;
  for (const int rank : {1, 2}) expect_named(processes, rank, victim);
}

TEST_P(Death, OfServersProcessIsNamed) {
  Processes processes;
  processes.board().stage = -1;
  start_victim(processes, 2, 4, 1, true);
  const std::string victim = text("rank 2 (pid ", processes.pid(2), ",");
  ASSERT_TRUE(wait_until([&] { return processes.report(2).stage == 1; }));
  for (const int rank : {0, 1}) {
    processes.start(rank, {}, [&processes, rank](Report& report) {
      report_error(report, [&] { wait_for_others(processes.board(), rank, 4, report); });
    });
  }
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(wait_until([&] { return processes.report(rank).stage == 1; }));
  }
  processes.board().stage = 0;
  for (const int rank : {0, 1}) expect_named(processes, rank, victim);
}

std::string child_name(const testing::TestParamInfo<Child>& info) {
  return info.param == Child::none     ? "Alone"
         : info.param == Child::forked ? "ForkedChild"
                                       : "RawChild";
}

INSTANTIATE_TEST_SUITE_P(Initialisation, Death,
                         testing::Values(Child::none, Child::forked, Child::raw), child_name);

// Whenever a rank is killed, the other ranks must either all join the communicator or name the
// victim.
TEST(DeathAtAnyMoment, IsNamedUnlessAllOthersJoined) {
  std::mt19937 random(20260102);
  for (int round = 0; round < 12; ++round) {
    Processes processes;
    constexpr int kSize = 5;
    constexpr int kVictim = 3;
    const int port = free_port();
    for (int rank = 0; rank < kSize; ++rank) {
      processes.start(
          rank, {{"HCCL_COMM_ID", text("127.0.0.1:", port)}}, [&, rank](Report& report) {
            const hcclUniqueId passed = rank == 0 ? create_unique_id() : hcclUniqueId{};
            const Ending ending =
                try_join(resolve_unique_id(passed), kSize, rank, std::chrono::milliseconds(1500));
            write_report(report, ending.code, ending.text);
          });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 25'000));
    processes.kill(kVictim);
    int joined = 0;
    for (const int rank : {0, 1, 2, 4}) {
      ASSERT_TRUE(processes.finished(rank));
      if (processes.report(rank).code == hcclSuccess) {
        ++joined;
      } else {
        EXPECT_NE(processes.text(rank).find("rank 3"), std::string::npos) << processes.text(rank);
      }
    }
    EXPECT_TRUE(joined == 0 || joined == kSize - 1) << joined << " of the others joined";
  }
}

FileDescriptor refuse_segment(int) { throw Error(hcclOutOfMemory, "no room for the segment"); }

TEST(Failure, OfLeadersSegmentReachesAllRanks) {
  Processes processes;
  const int port = free_port();
  for (const int rank : {0, 1, 2}) {
    processes.start(
        rank, {{"HCCL_COMM_ID", text("127.0.0.1:", port)}}, [&processes, rank](Report& report) {
          const hcclUniqueId id =
              resolve_unique_id(rank == 0 ? create_unique_id() : hcclUniqueId{});
          report_error(report, [&] {
            static_cast<void>(join(id, 3, rank, contribution_of(rank), refuse_segment,
                                   Deadline::after(kPatience)));
          });
          // Rank 0 waits, because the news of its exit might reach the other ranks before its error
          // does.
          const auto has_error = [&](int other) { return processes.report(other).code != 0; };
          if (rank == 0)
            static_cast<void>(wait_until([&] { return has_error(1) && has_error(2); }));
        });
  }
  for (const int rank : {0, 1, 2}) {
    ASSERT_TRUE(processes.finished(rank));
    EXPECT_EQ(processes.report(rank).code, hcclOutOfMemory);
    EXPECT_NE(processes.text(rank).find("no room for the segment"), std::string::npos);
    const std::string prefix = rank == 0 ? "no room" : "rank 0 (pid ";
    EXPECT_EQ(processes.text(rank).find(prefix), 0U) << processes.text(rank);
  }
}

}  // namespace
}  // namespace hccl::bootstrap::test
