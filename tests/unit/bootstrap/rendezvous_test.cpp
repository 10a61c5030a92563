// SPDX-License-Identifier: Apache-2.0
// Tests the rules of the rendezvous, and the errors for breaking them.
#include "bootstrap/rendezvous.h"

#include <gtest/gtest.h>

namespace hccl::bootstrap {
namespace {

Hello hello(int rank, int size, const std::string& node = "node") {
  return {.rank = rank, .size = size, .process = {1000 + rank, 1, "host-a", node}};
}

void admit_all(Rendezvous& rendezvous, int size) {
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_FALSE(rendezvous.admit(hello(rank, size), "here"));
  }
  rendezvous.advance();
}

TEST(Rendezvous, PassesThroughAllPhases) {
  Rendezvous rendezvous;
  rendezvous.advance();
  EXPECT_EQ(rendezvous.phase(), Rendezvous::Phase::gathering);
  admit_all(rendezvous, 3);
  EXPECT_EQ(rendezvous.phase(), Rendezvous::Phase::exchanging);
  EXPECT_EQ(rendezvous.table().ranks.at(2).process.pid, 1002);
  for (const int rank : {2, 0}) rendezvous.set_ready(rank, {});
  rendezvous.advance();
  EXPECT_EQ(rendezvous.phase(), Rendezvous::Phase::exchanging);
  EXPECT_EQ(rendezvous.waited_for(), "rank 1 has not finished exchanging descriptors");
  rendezvous.set_ready(1, {});
  rendezvous.advance();
  EXPECT_EQ(rendezvous.phase(), Rendezvous::Phase::complete);
  const auto late = rendezvous.admit(hello(1, 3), "there");
  ASSERT_TRUE(late);
  EXPECT_NE(late->text.find("already complete: its 3 ranks"), std::string::npos);
}

TEST(Rendezvous, DifferentSizesFailAllRanks) {
  Rendezvous rendezvous;
  EXPECT_FALSE(rendezvous.admit(hello(4, 8), "here"));
  EXPECT_FALSE(rendezvous.admit(hello(0, 8), "here"));
  const auto failure = rendezvous.admit(hello(2, 4), "there");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, hcclInvalidArgument);
  EXPECT_EQ(failure->text,
            "the ranks disagree on the size of the communicator: rank 2 (pid 1002, host host-a) "
            "passes 4, but ranks 0,4 pass 8; start every rank with the same size");
  EXPECT_EQ(rendezvous.phase(), Rendezvous::Phase::failed);
  EXPECT_EQ(rendezvous.admit(hello(1, 8), "here")->text, failure->text);
}

TEST(Rendezvous, DuplicateRankErrorNamesBothProcesses) {
  Rendezvous rendezvous;
  EXPECT_FALSE(rendezvous.admit(hello(1, 3), "127.0.0.1:11"));
  Hello second = hello(1, 3);
  second.process.pid = 55;
  const auto failure = rendezvous.admit(second, "127.0.0.1:22");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->text,
            "rank 1 is already taken by pid 1001 on host host-a (127.0.0.1:11), and pid 55 on host "
            "host-a (127.0.0.1:22) claims it too; give every process a rank of its own");
  EXPECT_EQ(rendezvous.phase(), Rendezvous::Phase::gathering);
}

TEST(Rendezvous, RefusesRankBeyondSize) {
  Rendezvous rendezvous;
  EXPECT_TRUE(rendezvous.admit(hello(3, 3), "here"));
  EXPECT_EQ(rendezvous.size(), 0);
  EXPECT_FALSE(rendezvous.has_joined(3));
  EXPECT_FALSE(rendezvous.has_joined(-1));
}

TEST(Rendezvous, KeepsFirstFailure) {
  Rendezvous rendezvous;
  admit_all(rendezvous, 4);
  rendezvous.rank_exited(3);
  rendezvous.rank_exited(1);
  rendezvous.rank_gave_up(0, 120);
  EXPECT_EQ(rendezvous.failure().code, hcclSystemError);
  EXPECT_EQ(rendezvous.failure().text.find("rank 3 (pid 1003, host host-a) exited during"), 0U);
}

TEST(Rendezvous, TimeoutNamesMissingRanks) {
  Rendezvous rendezvous;
  for (const int rank : {0, 1, 2, 4, 6, 7}) {
    EXPECT_FALSE(rendezvous.admit(hello(rank, 8), "here"));
  }
  rendezvous.rank_gave_up(4, 120);
  EXPECT_EQ(rendezvous.failure().code, hcclInternalError);
  EXPECT_EQ(rendezvous.failure().text,
            "ranks 3,5 have not joined after 120 s (rank 4 (pid 1004, host host-a) gave up "
            "waiting); start every missing rank, or raise HCCL_INIT_TIMEOUT");
}

TEST(Rendezvous, CompletesAcrossNodes) {
  Rendezvous rendezvous;
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_FALSE(rendezvous.admit(hello(rank, 4, rank < 3 ? "a" : "b"), "here"));
  }
  EXPECT_FALSE(rendezvous.several_nodes());
  rendezvous.advance();
  EXPECT_TRUE(rendezvous.several_nodes());
  EXPECT_EQ(rendezvous.phase(), Rendezvous::Phase::exchanging);
  const Bytes announcement(3, std::byte{7});
  for (int rank = 0; rank < 4; ++rank)
    rendezvous.set_ready(rank, rank == 2 ? announcement : Bytes{});
  rendezvous.advance();
  EXPECT_EQ(rendezvous.phase(), Rendezvous::Phase::complete);
  EXPECT_EQ(rendezvous.announced(), (std::vector<Bytes>{{}, {}, announcement, {}}));
  EXPECT_EQ(rendezvous.describe_ranks({3}), "rank 3 (pid 1003, host host-a)");
  EXPECT_EQ(rendezvous.describe_ranks({1, 2, 3}), "ranks 1-3 (host host-a)");
}

TEST(Rendezvous, RanksOwnErrorReachesOthers) {
  Rendezvous rendezvous;
  admit_all(rendezvous, 2);
  rendezvous.rank_left(1, {hcclOutOfMemory, "no memory"});
  EXPECT_EQ(rendezvous.failure().code, hcclOutOfMemory);
  EXPECT_EQ(rendezvous.failure().text,
            "rank 1 (pid 1001, host host-a) failed during initialisation: no memory");
}

}  // namespace
}  // namespace hccl::bootstrap
