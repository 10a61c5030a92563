// SPDX-License-Identifier: Apache-2.0
// Lists of ranks as people read them.
#include "base/rank_text.h"

#include <gtest/gtest.h>

namespace hccl {
namespace {

TEST(RankList, JoinsNeighbours) {
  EXPECT_EQ(rank_list({3}), "rank 3");
  EXPECT_EQ(rank_list({3, 5}), "ranks 3,5");
  EXPECT_EQ(rank_list({0, 1, 2, 4, 5, 9}), "ranks 0-2,4,5,9");
  std::vector<int> odd;
  for (int rank = 1; rank < 1000; rank += 2) odd.push_back(rank);
  EXPECT_LT(rank_list(odd).size(), 200U);
}

TEST(RankText, NamesProcessAndHost) { EXPECT_EQ(rank_text(3, 42, "a"), "rank 3 (pid 42, host a)"); }

}  // namespace
}  // namespace hccl
