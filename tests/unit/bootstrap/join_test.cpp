// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process join, in several communicators, and fail by name.
#include "bootstrap/join.h"

#include "bootstrap/server_registry.h"
#include "joining_ranks.h"
#include "loopback_test.h"

namespace hccl::bootstrap::test {
namespace {

class Join : public LoopbackTest {};

TEST_F(Join, TwoThreadsExchangeEverything) {
  expect_all_joined(join_as_threads(create_unique_id(), 2));
}

TEST_F(Join, SixteenThreads) { expect_all_joined(join_as_threads(create_unique_id(), 16)); }

TEST_F(Join, OneRankNeedsNobody) {
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

TEST_F(Join, SeveralCommunicatorsAtOnce) {
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
  EXPECT_NE(endings[0][0].table.secret, endings[1][0].table.secret);
}

TEST_F(Join, DeadlineNamesTheMissingRanks) {
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

}  // namespace
}  // namespace hccl::bootstrap::test
