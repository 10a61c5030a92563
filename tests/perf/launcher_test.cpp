// SPDX-License-Identifier: Apache-2.0
// Tests starting and supervising children that make no library call.
#include "launcher.h"

#include "child.h"
#include "peer_watch.h"
#include "support/text_parts.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hccl_perf {
namespace {

using hccl::test::expect_parts;

using namespace std::chrono_literals;

struct Launched {
  int status = 0;
  std::string printed;  // stderr of launch() and its children
};

Launched launch_captured(const LaunchPlan& plan, Board& board,
                         const std::function<int(const ChildLinks&)>& child) {
  testing::internal::CaptureStderr();
  const int status = launch(plan, board, child);
  return {status, testing::internal::GetCapturedStderr()};
}

[[noreturn]] void sleep_for_ever() {
  while (true) pause();
}

int finish(const Board& board, int rank, int status) {
  board.record(rank).finished = true;
  return status;
}

TEST(Launch, SucceedsWhenAllChildrenDo) {
  Board board(4, 0);
  const int status = launch(
      {4, 1, 0}, board, [&](const ChildLinks& links) { return finish(board, links.process, 0); });
  EXPECT_EQ(status, 0);
  for (int rank = 0; rank < 4; ++rank) EXPECT_NE(board.record(rank).pid.load(), getpid());
}

int launch_with_interface(const char* value) {
  setenv("HCCL_SOCKET_IFNAME", value, 1);
  Board board(1, 0);
  const int status = launch({1, 1, 0}, board, [&](const ChildLinks& links) {
    const char* const seen = std::getenv("HCCL_SOCKET_IFNAME");
    const bool is_loopback = seen != nullptr && std::string(seen) == "lo";
    return finish(board, links.process, is_loopback ? 10 : 11);
  });
  unsetenv("HCCL_SOCKET_IFNAME");
  return status;
}

TEST(Launch, DefaultsChildrenToTheLoopbackInterface) {
  EXPECT_EQ(launch_with_interface("eth"), 11);
  EXPECT_EQ(launch_with_interface(""), 10) << "empty counts as unset";
}

TEST(Launch, NamesSimulatedNodes) {
  constexpr const char* kNodes[] = {"node0", "node0", "node1"};
  Board board(3, 0);
  const int status = launch({3, 1, 0, 0, 2}, board, [&](const ChildLinks& links) {
    const char* seen = std::getenv("HCCL_NODE_ID");
    const bool right = seen != nullptr && std::string(seen) == kNodes[links.process];
    return finish(board, links.process, right ? 0 : 10);
  });
  EXPECT_EQ(status, 0);
}

TEST(Launch, SpreadsProcessesOverNodesInEvenBlocks) {
  for (int nodes = 1; nodes <= 7; ++nodes) {
    for (int processes = nodes; processes <= 20; ++processes) {
      std::vector<int> sizes(static_cast<std::size_t>(nodes), 0);
      int previous = 0;
      for (int process = 0; process < processes; ++process) {
        const int node = node_of_process(process, processes, nodes);
        ASSERT_TRUE(node == previous || node == previous + 1) << "blocks are consecutive";
        const int first = first_process_of_node(node, processes, nodes);
        EXPECT_EQ(process - first, sizes[static_cast<std::size_t>(node)]++);
        previous = node;
      }
      const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
      EXPECT_LE(*most - *least, 1) << processes << " processes on " << nodes << " nodes";
    }
  }
}

TEST(Launch, WrongDataFailsTheRunWithoutEndingOtherChildren) {
  Board board(3, 0);
  const auto [status, printed] = launch_captured({3, 1, 0}, board, [&](const ChildLinks& links) {
    if (links.process != 1)
      std::this_thread::sleep_for(1200ms);  // longer than the grace period after a failure
    return finish(board, links.process, links.process == 1 ? 1 : 0);
  });
  EXPECT_EQ(status, 1);
  EXPECT_EQ(printed, "");
  EXPECT_EQ(board.failure(), "");
}

TEST(Launch, PrefersAFailureToOtherStatuses) {
  for (const int slower : {0, 1}) {  // the child with status 3 exits first or last
    Board board(2, 0);
    const int status = launch({2, 1, 0}, board, [&](const ChildLinks& links) {
      if (links.process == 1) std::this_thread::sleep_for(50ms);
      return finish(board, links.process, links.process == slower ? 3 : 1);
    });
    EXPECT_EQ(status, 1);
  }
  Board board(2, 0);
  EXPECT_EQ(launch({2, 1, 0}, board,
                   [&](const ChildLinks& links) {
                     return finish(board, links.process, links.process == 0 ? 3 : 0);
                   }),
            3);
}

TEST(Launch, EndsQuietlyWhenItsOutputIsClosed) {
  Board board(2, 0);
  const auto [status, printed] = launch_captured({2, 1, 0}, board, [](const ChildLinks& links) {
    if (links.process == 0) raise(SIGPIPE);
    sleep_for_ever();
    return 0;
  });
  EXPECT_EQ(status, 128 + SIGPIPE);
  EXPECT_EQ(printed, "");
  EXPECT_TRUE(board.record(1).reported) << "otherwise rank 1 may print that rank 0 has failed";
}

TEST(Launch, ReportsAKilledChildToOtherChildren) {
  Board board(4, 0);
  const auto [status, printed] =
      launch_captured({4, 1, 0}, board, [&](const ChildLinks& links) -> int {
        if (links.process == 2) raise(SIGKILL);
        PeerWatch watch(board, links.process, 1, links.notice, 0);
        sleep_for_ever();
      });
  EXPECT_EQ(status, 1);
  const std::string failure = board.failure();
  expect_parts(failure, {"rank 2 (pid ", "was killed by signal 9"});
  expect_parts(printed, {"rank 0: gives up: rank 2 (pid ", "rank 1: gives up: rank 2",
                         "rank 3: gives up: rank 2"});
}

TEST(Launch, AddsTheCulpritToOtherErrors) {
  Board board(2, 0);
  const auto [status, printed] =
      launch_captured({2, 1, 0}, board, [&](const ChildLinks& links) -> int {
        if (links.process == 1) raise(SIGABRT);
        while (board.failure().empty()) std::this_thread::sleep_for(1ms);
        fail_rank(board, 0, true, "the connection is gone");
      });
  EXPECT_EQ(status, 1);
  expect_parts(printed, {"rank 0: the connection is gone (rank 1 (pid ", "was killed by signal 6"});
}

TEST(Launch, KillsAChildThatDoesNotEndAfterAFailure) {
  Board board(2, 0);
  const auto [status, printed] =
      launch_captured({2, 1, 0}, board, [&](const ChildLinks& links) -> int {
        if (links.process == 0) return 1;  // without setting `finished`
        raise(SIGSTOP);
        sleep_for_ever();
      });
  EXPECT_EQ(status, 1);
  expect_parts(printed, {"rank 0 (pid ", "exited with status 1 before the end", "rank 1 (pid "});
}

TEST(Launch, NamesUnfinishedRanksAtTheTimeout) {
  Board board(3, 0);
  const auto [status, printed] =
      launch_captured({3, 1, 0.3}, board, [&](const ChildLinks& links) -> int {
        if (links.process == 1) return finish(board, 1, 0);
        board.record(links.process).phase = Phase::timing;
        board.record(links.process).row_bytes = 1 << 20;
        if (links.process == 2) raise(SIGSTOP);
        sleep_for_ever();
      });
  EXPECT_EQ(status, 1);
  expect_parts(printed,
               {"not finished after 0.3 s (-T): rank 0 (pid ", "timing 1 MiB", ", stopped)"});
  EXPECT_EQ(printed.find("rank 1 (pid"), std::string::npos) << printed;
}

TEST(Launch, NamesAllRanksOfAThreadedProcess) {
  Board board(4, 0);
  const auto [status, printed] =
      launch_captured({2, 2, 0}, board, [&](const ChildLinks& links) -> int {
        if (links.process == 1) raise(SIGKILL);
        PeerWatch watch(board, 0, 2, links.notice, 0);
        sleep_for_ever();
      });
  EXPECT_EQ(status, 1);
  expect_parts(printed, {"ranks 2,3 (pid ", "rank 1: gives up"});
}

TEST(Launch, ChildrenDieWithTheirParent) {
  Pipe alive;  // reaches end of file once the parent and its children have ended
  const pid_t parent = fork_child();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    alive.close_read();
    Board board(3, 0);
    static_cast<void>(launch({3, 1, 0}, board, [&](const ChildLinks&) -> int {
      [[maybe_unused]] const auto written = write(alive.write_end(), "x", 1);
      sleep_for_ever();
    }));
    std::_Exit(0);
  }
  alive.close_write();
  char started[3];
  for (char& one : started) ASSERT_EQ(read(alive.read_end(), &one, 1), 1);
  kill(parent, SIGKILL);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  char more = 0;
  EXPECT_EQ(read(alive.read_end(), &more, 1), 0);
}

TEST(Launch, TheIdPipeClosesWhenProcessZeroExits) {
  Board board(2, 0);
  const int status = launch({2, 1, 0}, board, [&](const ChildLinks& links) -> int {
    if (links.process == 0) return finish(board, 0, 0);
    char byte = 0;
    const bool ended = read(links.id->read_end(), &byte, 1) == 0;
    return finish(board, 1, ended ? 0 : 3);
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hccl_perf
