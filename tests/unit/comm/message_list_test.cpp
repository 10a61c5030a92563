// SPDX-License-Identifier: Apache-2.0
// Few messages and many are kept alike.
#include "comm/message_list.h"

#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::comm {
namespace {

MessageList numbers(int count) {
  MessageList list;
  for (int i = 0; i < count; ++i) {
    PointToPoint call;
    call.peer = i;
    list.push_back(call);
  }
  return list;
}

std::vector<int> peers(const MessageList& list) {
  std::vector<int> found;
  for (const PointToPoint& call : list.all()) found.push_back(call.peer);
  return found;
}

std::vector<int> up_to(int count) {
  std::vector<int> expected(static_cast<std::size_t>(count));
  std::iota(expected.begin(), expected.end(), 0);
  return expected;
}

TEST(MessageList, KeepsTheOrderHoweverMany) {
  for (int count = 0; count <= 9; ++count) EXPECT_EQ(peers(numbers(count)), up_to(count)) << count;
}

TEST(MessageList, LosesWhatIsTakenOutAndCanGrowAgain) {
  for (int count = 0; count <= 9; ++count) {
    for (int left = 0; left <= count; ++left) {
      MessageList list = numbers(count);
      list.erase_if([&](const PointToPoint& call) { return call.peer >= left; });
      EXPECT_EQ(peers(list), up_to(left)) << count;
      for (int i = left; i < 12; ++i) {
        PointToPoint call;
        call.peer = i;
        list.push_back(call);
      }
      EXPECT_EQ(peers(list), up_to(12)) << count << ' ' << left;
    }
  }
}

TEST(MessageList, IsEmptyWhenItHasMoved) {
  for (int count = 0; count <= 5; ++count) {
    MessageList from = numbers(count);
    MessageList to(std::move(from));
    EXPECT_EQ(peers(to), up_to(count));
    EXPECT_EQ(peers(from), up_to(0));  // NOLINT(bugprone-use-after-move): that is what is tested
    from = std::move(to);
    EXPECT_EQ(peers(from), up_to(count));
    EXPECT_EQ(peers(to), up_to(0));  // NOLINT(bugprone-use-after-move)
  }
}

}  // namespace
}  // namespace hccl::comm
