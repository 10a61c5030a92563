// SPDX-License-Identifier: Apache-2.0
// Joins ranks that are processes, in any order, and repeatedly on one port. If a rank makes a
// mistake, the error must name the mistake.
#include "bootstrap/server_registry.h"
#include "joining_ranks.h"
#include "processes.h"

#include <fstream>
#include <random>
#include <sstream>

namespace hccl::bootstrap::test {
namespace {

using Environment = std::map<std::string, std::string>;

Environment with_port(int port) { return {{"HCCL_COMM_ID", text("127.0.0.1:", port)}}; }

// Joins with the id that a program passes, and reports the outcome.
void join_and_report(Report& report, const hcclUniqueId& passed, int size, int rank,
                     std::chrono::milliseconds limit = kPatience) {
  hcclUniqueId id{};
  try {
    id = resolve_unique_id(passed);
  } catch (const Error& error) {
    return write_report(report, error.code(), error.what());
  }
  const Ending ending = try_join(id, size, rank, limit);
  std::string wrong = ending.text;
  if (ending.code == hcclSuccess) wrong = table_error(ending.table, size, rank);
  write_report(report, ending.code, wrong);
}

void expect_joined(Processes& processes, int size) {
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_TRUE(processes.finished(rank)) << "rank " << rank;
    EXPECT_EQ(processes.report(rank).code, hcclSuccess) << processes.text(rank);
    EXPECT_EQ(processes.text(rank), "") << "rank " << rank;
  }
}

// Starts a rank as a process. Only rank 0 creates an id; the others pass an empty id.
void start_rank(Processes& processes, int rank, int size, const Environment& environment) {
  processes.start(rank, environment, [=](Report& report) {
    join_and_report(report, rank == 0 ? create_unique_id() : hcclUniqueId{}, size, rank);
  });
}

TEST(JoinProcesses, StartInAnyOrder) {
  std::mt19937 random(20260101);
  for (const int first : {0, 3, 1}) {
    Processes processes;
    const int port = free_port();
    for (int i = 0; i < 4; ++i) {
      start_rank(processes, (first + i) % 4, 4, with_port(port));
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
    }
    expect_joined(processes, 4);
  }
}

TEST(JoinProcesses, RankZeroNeedNotCreateId) {
  Processes processes;
  const int port = free_port();
  for (const int rank : {1, 2, 0}) {
    processes.start(rank, with_port(port),
                    [=](Report& report) { join_and_report(report, hcclUniqueId{}, 3, rank); });
  }
  expect_joined(processes, 3);
}

TEST(JoinProcesses, AnyRankMayCreateId) {
  Processes processes;
  for (const int rank : {0, 1, 2}) {
    processes.start(rank, {}, [&processes, rank](Report& report) {
      Board& board = processes.board();
      if (rank == 2) {
        board.id = create_unique_id();
        board.has_id = true;
      }
      wait_until([&] { return board.has_id.load(); });
      join_and_report(report, board.id, 3, rank);
    });
  }
  expect_joined(processes, 3);
}

TEST(JoinProcesses, SixteenProcessesJoin) {
  Processes processes;
  const int port = free_port();
  for (int rank = 15; rank >= 0; --rank) start_rank(processes, rank, 16, with_port(port));
  expect_joined(processes, 16);
}

TEST(JoinProcesses, ConsecutiveRunsShareOnePort) {
  const int port = free_port();
  for (int run = 0; run < 6; ++run) {
    Processes processes;
    for (const int rank : {2, 0, 1}) start_rank(processes, rank, 3, with_port(port));
    expect_joined(processes, 3);
  }
}

TEST(JoinProcesses, HostNameAndIpAddressesWork) {
  for (const char* host : {"localhost", "[::1]", "::1", "127.0.0.1"}) {
    Processes processes;
    const Environment environment{{"HCCL_COMM_ID", text(host, ':', free_port())}};
    for (const int rank : {1, 0}) start_rank(processes, rank, 2, environment);
    expect_joined(processes, 2);
  }
}

TEST(JoinProcesses, LaterCommunicatorsGetOtherPorts) {
  Processes processes;
  const int port = free_port();
  for (const int rank : {0, 1}) {
    processes.start(rank, with_port(port), [&processes, rank](Report& report) {
      Board& board = processes.board();
      join_and_report(report, rank == 0 ? create_unique_id() : hcclUniqueId{}, 2, rank);
      if (report.code != hcclSuccess) return;
      if (rank == 0) {
        board.id = create_unique_id();
        board.has_id = true;
      }
      wait_until([&] { return board.has_id.load(); });
      join_and_report(report, board.id, 2, rank);
      if (report.code != hcclSuccess) return;
      // Only the first communicator may have an empty id, so this call must fail at once.
      join_and_report(report, hcclUniqueId{}, 2, rank);
      report.code = report.code == hcclInvalidArgument ? hcclSuccess : hcclInternalError;
      if (std::string(report.text).find("only the first communicator") != std::string::npos) {
        report.text[0] = '\0';
      }
    });
  }
  expect_joined(processes, 2);
}

TEST(JoinProcesses, DifferentSizeFailsAllRanks) {
  Processes processes;
  const int port = free_port();
  for (const int rank : {0, 1, 2}) {
    start_rank(processes, rank, rank == 2 ? 4 : 3, with_port(port));
  }
  for (const int rank : {0, 1, 2}) {
    processes.expect_reported(rank, hcclInvalidArgument, "passes 4");
  }
}

TEST(JoinProcesses, DuplicateRankIsRefusedAndJobContinues) {
  Processes processes;
  const int port = free_port();
  start_rank(processes, 0, 3, with_port(port));
  for (const int index : {1, 5}) {
    processes.start(index, with_port(port),
                    [](Report& report) { join_and_report(report, hcclUniqueId{}, 3, 1); });
  }
  ASSERT_TRUE(wait_until([&] { return processes.report(1).done || processes.report(5).done; }));
  const int refused = processes.report(1).done ? 1 : 5;
  const int first = refused == 1 ? 5 : 1;
  EXPECT_EQ(processes.report(refused).code, hcclInvalidUsage);
  EXPECT_NE(
      processes.text(refused).find(text("rank 1 is already taken by pid ", processes.pid(first))),
      std::string::npos)
      << processes.text(refused);
  start_rank(processes, 2, 3, with_port(port));
  for (const int index : {0, 2, first}) processes.expect_reported(index, hcclSuccess, "");
}

TEST(JoinProcesses, WrongSecretIsRefusedAndJobContinues) {
  Processes processes;
  Environment environment = with_port(free_port());
  environment["HCCL_SECRET"] = "the right one";
  start_rank(processes, 0, 2, environment);
  Environment wrong = environment;
  wrong["HCCL_SECRET"] = "a wrong one";
  start_rank(processes, 1, 2, wrong);
  processes.expect_reported(1, hcclInvalidArgument, "HCCL_SECRET");
  start_rank(processes, 1, 2, environment);
  expect_joined(processes, 2);
}

TEST(JoinProcesses, AddressOfAnotherMachineIsRefused) {
  Processes processes;
  processes.start(0, {{"HCCL_COMM_ID", "203.0.113.7:5555"}}, [](Report& report) {
    report_error(report, [] { static_cast<void>(create_unique_id()); });
  });
  processes.expect_reported(0, hcclInvalidArgument, "not an address of this machine");
}

TEST(JoinProcesses, OccupiedPortIsReported) {
  Processes processes;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  void* const generic = &address;
  ASSERT_EQ(bind(listener, static_cast<sockaddr*>(generic), length), 0);
  ASSERT_EQ(listen(listener, 5), 0);
  ASSERT_EQ(getsockname(listener, static_cast<sockaddr*>(generic), &length), 0);
  processes.start(0, with_port(ntohs(address.sin_port)), [](Report& report) {
    report_error(report, [] { static_cast<void>(create_unique_id()); });
  });
  processes.expect_reported(0, hcclSocketError, "another process listens");
  close(listener);
}

TEST(JoinProcesses, EmptyIdWithoutVariableIsRefusedAtOnce) {
  Processes processes;
  processes.start(0, {}, [](Report& report) { join_and_report(report, hcclUniqueId{}, 2, 0); });
  processes.expect_reported(0, hcclInvalidArgument, "HCCL_COMM_ID");
}

TEST(JoinProcesses, SingleRankNeedsOnlyVariable) {
  Processes processes;
  processes.start(0, with_port(free_port()), [](Report& report) {
    const Ending ending = try_join(resolve_unique_id(hcclUniqueId{}), 1, 0);
    write_report(report, ending.code, ending.text);
  });
  expect_joined(processes, 1);
}

// A separate log file for a rank.
class LogFile {
 public:
  LogFile() {
    static int made = 0;
    path_ = text(testing::TempDir(), "hccl-missing-", getpid(), "-", made++);
  }
  ~LogFile() { unlink(path_.c_str()); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  [[nodiscard]] Environment with(Environment environment) const {
    environment["HCCL_DEBUG_FILE"] = path_;
    return environment;
  }
  [[nodiscard]] std::string contents() const {
    std::ifstream file(path_);
    std::ostringstream all;
    if (file) all << file.rdbuf();
    return all.str();
  }
  [[nodiscard]] bool eventually_contains(const std::string& part) const {
    return wait_until([&] { return contents().find(part) != std::string::npos; });
  }

 private:
  std::string path_;
};

TEST(JoinProcesses, LongWaitIsReportedOnceWithMissingRanks) {
  Processes processes;
  const LogFile log;
  Environment environment = log.with(with_port(free_port()));
  environment["HCCL_HANG_REPORT"] = "0.1";
  for (const int rank : {0, 2}) start_rank(processes, rank, 4, environment);
  EXPECT_TRUE(log.eventually_contains("still waiting"));
  for (const int rank : {1, 3}) start_rank(processes, rank, 4, environment);
  expect_joined(processes, 4);
  const std::string logged = log.contents();
  EXPECT_NE(logged.find("ranks 1,3 have not joined (the communicator has 4 ranks)"),
            std::string::npos)
      << logged;
  EXPECT_EQ(logged.find("still waiting"), logged.rfind("still waiting")) << logged;
}

TEST(JoinProcesses, EachNodeReportsMissingRanksWithDefaultTimes) {
  Processes processes;
  const LogFile here;
  const LogFile there;
  const int port = free_port();
  start_rank(processes, 0, 3, here.with(with_port(port)));
  Environment other = there.with(with_port(port));
  other["HCCL_NODE_ID"] = "another";
  start_rank(processes, 1, 3, other);
  for (const LogFile* log : {&here, &there})
    EXPECT_TRUE(log->eventually_contains("rank 2 has not joined (the communicator has 3 ranks)"))
        << log->contents();
  start_rank(processes, 2, 3, with_port(port));
  for (int rank = 0; rank < 3; ++rank) processes.expect_reported(rank, hcclSuccess, "");
}

TEST(JoinProcesses, ServerNotFoundIsReportedWithAddress) {
  Processes processes;
  const LogFile log;
  const int port = free_port();
  Environment environment = log.with(with_port(port));
  environment["HCCL_HANG_REPORT"] = "0.1";
  start_rank(processes, 1, 2, environment);
  EXPECT_TRUE(
      log.eventually_contains(text("rank 1 has found no server at 127.0.0.1:", port, " for ")))
      << log.contents();
  start_rank(processes, 0, 2, with_port(port));
  expect_joined(processes, 2);
}

TEST(JoinProcesses, ForkedChildIsRefused) {
  Processes processes;
  processes.start(0, {}, [](Report& report) {
    const hcclUniqueId id = create_unique_id();
    const pid_t child = fork();
    if (child == 0) {
      const Ending ending = try_join(id, 2, 1);
      write_report(report, ending.code, ending.text);
      exit(ending.code == hcclInvalidUsage ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) write_report(report, hcclInternalError, "the child was not refused");
  });
  processes.expect_reported(0, hcclInvalidUsage, "");
}

}  // namespace
}  // namespace hccl::bootstrap::test
