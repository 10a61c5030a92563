// SPDX-License-Identifier: Apache-2.0
// The window over the groups that are under way, against a plain list.
#include "node/pending_messages.h"

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

PointToPoint call_of(Direction direction, std::uint64_t address, std::uint64_t bytes) {
  PointToPoint call;
  call.direction = direction;
  call.type = hcclInt8;
  call.peer = 1;
  call.count = bytes;
  call.address = address;
  return call;
}

MessageItem item_of(const PointToPoint& call) { return {&call, nullptr, nullptr, call.bytes()}; }

TEST(PendingMessages, ComesBackToAGroupThatWasLeft) {
  PendingMessages window;
  const PointToPoint call = call_of(Direction::send, 0, 8);
  EXPECT_FALSE(window.open(1));
  window.push_back(item_of(call));
  window.current()[0].state = MessageItem::State::offered;
  EXPECT_TRUE(window.open(1));
  ASSERT_EQ(window.current().size(), 1);
  EXPECT_EQ(window.current()[0].state, MessageItem::State::offered);
  window.close();
  EXPECT_FALSE(window.open(1));
}

TEST(PendingMessages, TellsWhatTouchesWhat) {
  PendingMessages window;
  const std::vector calls{call_of(Direction::send, 100, 10), call_of(Direction::send, 300, 10),
                          call_of(Direction::receive, 500, 10)};
  EXPECT_FALSE(window.open(calls.size()));
  for (const PointToPoint& call : calls) window.push_back(item_of(call));
  EXPECT_TRUE(window.conflicts(call_of(Direction::receive, 109, 1)));
  EXPECT_FALSE(window.conflicts(call_of(Direction::receive, 110, 190)));
  EXPECT_TRUE(window.conflicts(call_of(Direction::receive, 110, 191)));
  EXPECT_FALSE(window.conflicts(call_of(Direction::receive, 505, 1)))
      << "receives keep their order";
  EXPECT_FALSE(window.conflicts(call_of(Direction::send, 100, 10))) << "both only read";
  EXPECT_TRUE(window.conflicts(call_of(Direction::send, 509, 10)));
  window.close();
  EXPECT_FALSE(window.open(1));
  EXPECT_FALSE(window.conflicts(call_of(Direction::receive, 109, 1))) << "it has ended";
}

TEST(Mailbox, TellsWhichMessageIsAwaited) {
  std::set<std::uint64_t> told;
  for (const std::uint64_t number : {0u, 15u, 16u, 1'000'000u}) {
    for (const std::uint64_t count : {0u, 1u, 100u, 101u, 1u << 20, (1u << 20) + 1}) {
      for (const std::uint8_t type : {hcclInt8, hcclFloat32, hcclBfloat16}) {
        EXPECT_NE(awaiting(number, count, type), 0) << "nothing yet";
        EXPECT_TRUE(told.insert(awaiting(number, count, type)).second);
      }
    }
  }
}

TEST(PendingMessages, AsksOnceWhetherAnItemIsSure) {
  PendingMessages window;
  const std::vector<PointToPoint> calls(3, call_of(Direction::send, 0, 8));
  EXPECT_FALSE(window.open(1));
  window.push_back(item_of(calls[0]));
  std::size_t sure = 0;
  std::size_t asked = 0;
  const auto cannot_block = [&](const MessageItem& item) {
    ++asked;
    return static_cast<std::size_t>(item.call - calls.data()) < sure;
  };
  EXPECT_FALSE(window.all_are(cannot_block));
  sure = 1;
  EXPECT_TRUE(window.all_are(cannot_block));
  EXPECT_EQ(asked, 2);
  window.push_back(item_of(calls[1]));
  window.end_group();
  EXPECT_FALSE(window.all_are(cannot_block));
  window.close();
  EXPECT_TRUE(window.open(1));
  EXPECT_FALSE(window.all_are(cannot_block));
  sure = 2;
  EXPECT_TRUE(window.all_are(cannot_block));
  window.close();
  EXPECT_FALSE(window.open(1));
  window.push_back(item_of(calls[2]));
  EXPECT_FALSE(window.all_are(cannot_block)) << "an item of a place that another had";
}

TEST(PendingMessages, TakesAGroupBackThatCannotBegin) {
  PendingMessages window;
  const std::vector calls{call_of(Direction::send, 0, 8), call_of(Direction::send, 100, 8),
                          call_of(Direction::receive, 200, 8)};
  EXPECT_FALSE(window.open(1));
  window.push_back(item_of(calls[0]));
  window.push_back(item_of(calls[1]));
  window.push_back(item_of(calls[2]));
  window.take_back(2);
  EXPECT_EQ(window.groups_ahead(), 0);
  EXPECT_EQ(window.next_send(), nullptr);
  EXPECT_EQ(window.next_receive(), nullptr);
  EXPECT_FALSE(window.conflicts(call_of(Direction::receive, 100, 8)));
  window.close();
  EXPECT_FALSE(window.open(1));
}

// While a group has its turn, items stay where they are and conflicts are found, however many
// groups have ended before.
TEST(PendingMessages, ItemsStayUntilTheGroupEnds) {
  PendingMessages window;
  std::vector<PointToPoint> calls;
  for (std::uint64_t number = 0; number < 2'000; ++number)
    calls.push_back(call_of(Direction::send, 100 * number, 10));
  std::size_t next = 0;
  for (std::size_t turn = 0; turn < 1'500; ++turn) {
    if (!window.open(1)) window.push_back(item_of(calls[next++]));
    const MessageItem* const current = window.current().data();
    while (window.has_room_for(1)) {
      window.push_back(item_of(calls[next++]));
      window.end_group();
    }
    ASSERT_EQ(window.current().data(), current);
    ASSERT_EQ(current->call, &calls[turn]);
    ASSERT_TRUE(window.conflicts(call_of(Direction::receive, 100 * turn, 1)));
    ASSERT_TRUE(window.conflicts(call_of(Direction::receive, 100 * (next - 1), 1)));
    ASSERT_FALSE(turn != 0 && window.conflicts(call_of(Direction::receive, 100 * (turn - 1), 1)));
    window.close();
  }
}

// The groups in flight, first to last.
class Groups {
 public:
  using Calls = std::vector<PointToPoint>;

  Calls& make(std::mt19937& random) {
    Calls& group = groups_.emplace_back(1 + random() % (random() % 50 == 0 ? 200 : 5));
    for (PointToPoint& call : group) {
      const auto direction = random() % 2 == 0 ? Direction::send : Direction::receive;
      call = call_of(direction, random() % 10'000, 1 + random() % 50);
    }
    return group;
  }
  // Puts some behind those that are in the window.
  void begin_some(PendingMessages& window, std::mt19937& random) {
    for (std::size_t more = random() % 4; more != 0; --more) {
      const Calls& behind = make(random);
      if (!window.has_room_for(behind.size())) return groups_.pop_back();
      put(window, behind);
      window.end_group();
    }
  }
  static void put(PendingMessages& window, const Calls& group) {
    for (const PointToPoint& call : group) window.push_back(item_of(call));
  }
  [[nodiscard]] std::deque<Calls>& all() { return groups_; }

 private:
  std::deque<Calls> groups_;
};

void advance_some(PendingMessages& window, std::mt19937& random) {
  for (MessageItem* item = window.next_send(); item != nullptr && random() % 4 != 0;
       item = window.next_send()) {
    EXPECT_TRUE(item->sends());
    item->state = MessageItem::State::offered;
  }
  for (MessageItem* item = window.next_receive(); item != nullptr && random() % 4 != 0;
       item = window.next_receive()) {
    EXPECT_FALSE(item->sends());
    item->state = MessageItem::State::done;
  }
}

// Groups begin in any pattern and end in order.
TEST(PendingMessages, KeepsItsItemsInOrder) {
  std::mt19937 random(7);
  PendingMessages window;
  Groups groups;
  for (int turn = 0; turn < 20'000; ++turn) {
    const bool begun = !groups.all().empty();
    const Groups::Calls& group = begun ? groups.all().front() : groups.make(random);
    ASSERT_EQ(window.open(group.size()), begun);
    if (!begun) Groups::put(window, group);
    ASSERT_TRUE(std::ranges::equal(
        window.current(), group,
        [](const MessageItem& item, const PointToPoint& call) { return item.call == &call; }));
    groups.begin_some(window, random);
    EXPECT_EQ(window.groups_ahead(), groups.all().size() - 1);
    advance_some(window, random);
    if (random() % 8 == 0) continue;  // left
    window.close();
    groups.all().pop_front();
  }
}

}  // namespace
}  // namespace hccl::node
