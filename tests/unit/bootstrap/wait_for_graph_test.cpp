// SPDX-License-Identifier: Apache-2.0
// Tests which rank a wait-for graph blames, and when a waiting rank reports that ranks are missing.

#include "bootstrap/wait_for_graph.h"

#include "base/rank_text.h"
#include "bootstrap/missing_reports.h"

#include <vector>

#include <gtest/gtest.h>

namespace hccl::bootstrap {
namespace {

std::string root_cause(const WaitForGraph& ranks, int asker, const std::set<int>& gone = {}) {
  return ranks.root_cause(asker, gone, rank_list);
}

TEST(WaitForGraph, LeadsToUnresponsiveRanks) {
  WaitForGraph ranks;
  ranks.add(0, {"", "reduce", "", {3}});
  ranks.add(3, {"", "reduce", "", {2, 4}});
  ranks.add(4, {"", "reduce", "", {2}});
  ranks.add(1, {"", "reduce", "", {5}});
  EXPECT_EQ(root_cause(ranks, 0), "rank 2, stopped or out of reach");
  EXPECT_EQ(root_cause(ranks, 1), "rank 5, stopped or out of reach");
}

TEST(WaitForGraph, LeadsToIdleAndDepartedRanks) {
  WaitForGraph ranks;
  ranks.add(0, {"", "reduce", "", {1, 2, 3}});
  ranks.add(1, {"", "", "", {}});
  ranks.add(2, {"", "", "", {}});
  EXPECT_EQ(
      root_cause(ranks, 0, {3}),
      "rank 3, no longer in the communicator, and for ranks 1,2, which had no call in progress "
      "on this communicator");
}

TEST(WaitForGraph, NamesAFewIdleRanksBesideASilentRank) {
  WaitForGraph ranks;
  ranks.add(0, {"", "reduce", "", {2}});
  ranks.add(1, {"", "reduce", "", {0}});
  ranks.add(3, {"", "", "", {}});
  EXPECT_EQ(
      root_cause(ranks, 0),
      "rank 2, stopped or out of reach; a rank that does not answer may be waiting for rank 3, "
      "which had no call in progress on this communicator");
  for (const int rank : {4, 5, 6, 7}) ranks.add(rank, {"", "", "", {}});
  EXPECT_EQ(root_cause(ranks, 0), "rank 2, stopped or out of reach");
}

TEST(WaitForGraph, FollowsSeveralCallsOfOneRank) {
  WaitForGraph ranks;
  ranks.add(0, {"", "reduce", "", {1}});
  ranks.add(1, {"", "send", "", {0}});
  ranks.add(1, {"", "receive", "", {2}});
  EXPECT_EQ(root_cause(ranks, 0), "rank 2, stopped or out of reach");
}

TEST(WaitForGraph, ReportsCycle) {
  WaitForGraph ranks;
  ranks.add(0, {"op 1 of stream 0", "reduce", "", {1}});
  ranks.add(1, {"op 0 of stream 0", "barrier", "", {}, true});
  ranks.add(1, {"", "send", "", {0}});
  EXPECT_EQ(root_cause(ranks, 0),
            "ranks that wait for each other (rank 0 in op 1 of stream 0, reduce for rank 1; rank 1 "
            "in send for rank 0)");
}

TEST(WaitForGraph, MentionsGroupsIfOnlyMessagesFormACycle) {
  WaitForGraph ranks;
  ranks.add(0, {"", "send", "", {1}});
  ranks.add(1, {"op 0 of stream 0", "barrier", "", {}, true});
  ranks.add(1, {"", "send", "", {0}});
  EXPECT_EQ(root_cause(ranks, 0),
            "ranks that wait for each other (rank 0 in send for rank 1; rank 1 in send for rank "
            "0), as messages do that are not in one group");
}

TEST(WaitForGraph, ReportsTheEarliestMismatchOfAStream) {
  WaitForGraph ranks;
  for (const int number : {10, 9}) {
    const std::string position = "op " + std::to_string(number) + " of stream 0";
    ranks.add(0, {position, "barrier()", "dissemination", {1}});
    ranks.add(1, {position, "all_reduce(8, float, sum)", "ring", {0}});
  }
  EXPECT_EQ(ranks.mismatch().rfind("op 9 of stream 0: ", 0), 0U) << ranks.mismatch();
}

Waiting message(const std::string& call, int awaited, const std::string& blocks) {
  Waiting waiting{"", call, "", {awaited}};
  waiting.blocks = blocks;
  return waiting;
}

Waiting collective(const std::string& position, const std::string& blocks) {
  Waiting waiting{position, "barrier()", "dissemination", {1}};
  waiting.blocks = blocks;
  return waiting;
}

TEST(WaitForGraph, MessageAndCollectiveThatBlockEachOtherDeadlock) {
  const std::string position = "op 1 of stream 0";
  WaitForGraph ranks;
  ranks.add(0, collective(position, position));
  ranks.add(1, message("send(8, float) to rank 0", 0, position));
  ranks.add(2, collective(position, position));
  ranks.add(2, collective(position, position));  // a rank also answers its own query
  EXPECT_EQ(
      ranks.deadlock(),
      "rank 1 send(8, float) to rank 0 but ranks 0,2 barrier(); every rank must make the same "
      "calls in the same order");
  EXPECT_EQ(ranks.mismatch(), "");
}

TEST(WaitForGraph, NoDeadlockWhileAProgramCanStillCall) {
  const std::string position = "op 1 of stream 0";
  WaitForGraph sender_goes_on;
  sender_goes_on.add(0, collective(position, position));
  sender_goes_on.add(1, message("send", 0, ""));
  EXPECT_EQ(sender_goes_on.deadlock(), "");
  WaitForGraph receiver_goes_on;
  receiver_goes_on.add(0, collective(position, ""));
  receiver_goes_on.add(1, message("send", 0, position));
  EXPECT_EQ(receiver_goes_on.deadlock(), "");
  WaitForGraph on_another_stream;
  on_another_stream.add(0, collective("op 1 of stream 1", "op 1 of stream 1"));
  on_another_stream.add(1, message("send", 0, position));
  EXPECT_EQ(on_another_stream.deadlock(), "");
}

TEST(WaitForGraph, DifferentCallsAtOnePositionAreAMismatch) {
  WaitForGraph ranks;
  ranks.add(0, {"op 1 of stream 0", "reduce(8, root 0)", "tree", {1}});
  ranks.add(1, {"op 1 of stream 0", "reduce(8, root 0)", "tree", {3}});
  ranks.add(2, {"op 2 of stream 0", "barrier()", "", {3}});
  EXPECT_EQ(ranks.mismatch(), "");
  ranks.add(3, {"op 1 of stream 0", "reduce(8, root 2)", "tree", {2}});
  EXPECT_EQ(
      ranks.mismatch(),
      "op 1 of stream 0: rank 3 reduce(8, root 2) but ranks 0,1 reduce(8, root 0); every rank "
      "must make the same calls in the same order");
}

TEST(WaitForGraph, DifferentAlgorithmsAreAMismatch) {
  WaitForGraph ranks;
  ranks.add(0, {"op 1 of stream 0", "all_reduce(8)", "ring", {1}});
  ranks.add(1, {"op 1 of stream 0", "all_reduce(8)", "tree", {0}});
  ranks.add(2, {"op 1 of stream 0", "all_reduce(8)", "tree", {}, true});
  EXPECT_EQ(ranks.mismatch(),
            "op 1 of stream 0: rank 0 running all_reduce(8) with ring but ranks 1,2 running "
            "all_reduce(8) with tree; set the same HCCL_* variables on all ranks");
}

// Tests when a waiting rank reports missing ranks: after 5 s and after HCCL_HANG_REPORT, but only
// once if HCCL_HANG_REPORT is at most 5 s, and never if it is 0.

using std::chrono::milliseconds;

std::vector<milliseconds> times(milliseconds hang_report) {
  MissingReports reports(hang_report);
  std::vector<milliseconds> due;
  while (const auto next = reports.next()) {
    due.push_back(*next);
    reports.note_made();
  }
  return due;
}

TEST(MissingReports, AreMadeEarlyAndWithHangReports) {
  EXPECT_EQ(times(milliseconds(30'000)), (std::vector{milliseconds(5'000), milliseconds(30'000)}));
}

TEST(MissingReports, AreMadeOnceIfHangReportsComeEarlier) {
  for (const int hang_report : {1, 100, 5'000})
    EXPECT_EQ(times(milliseconds(hang_report)), std::vector{milliseconds(hang_report)});
}

TEST(MissingReports, AreOffWithHangReports) { EXPECT_TRUE(times(milliseconds(0)).empty()); }

}  // namespace
}  // namespace hccl::bootstrap
