// SPDX-License-Identifier: Apache-2.0
// Tests the groups of sends and receives that are in flight.
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
  return {.direction = direction, .type = hcclInt8, .peer = 1, .count = bytes, .address = address};
}

MessageItem item_of(const PointToPoint& call) { return {&call, nullptr, nullptr, call.bytes()}; }

TEST(PendingMessages, ResumesGroup) {
  PendingMessages pending;
  const PointToPoint call = call_of(Direction::send, 0, 8);
  EXPECT_FALSE(pending.open(1));
  pending.push_back(item_of(call));
  pending.current()[0].state = MessageItem::State::offered;
  EXPECT_TRUE(pending.open(1));
  ASSERT_EQ(pending.current().size(), 1);
  EXPECT_EQ(pending.current()[0].state, MessageItem::State::offered);
  pending.close();
  EXPECT_FALSE(pending.open(1));
}

TEST(PendingMessages, FindsConflicts) {
  PendingMessages pending;
  const std::vector calls{call_of(Direction::send, 100, 10), call_of(Direction::send, 300, 10),
                          call_of(Direction::receive, 500, 10)};
  EXPECT_FALSE(pending.open(calls.size()));
  for (const PointToPoint& call : calls) pending.push_back(item_of(call));
  EXPECT_TRUE(pending.conflicts(call_of(Direction::receive, 109, 1)));
  EXPECT_FALSE(pending.conflicts(call_of(Direction::receive, 110, 190)));
  EXPECT_TRUE(pending.conflicts(call_of(Direction::receive, 110, 191)));
  EXPECT_FALSE(pending.conflicts(call_of(Direction::receive, 505, 1)))
      << "receives keep their order";
  EXPECT_FALSE(pending.conflicts(call_of(Direction::send, 100, 10))) << "sends only read memory";
  EXPECT_TRUE(pending.conflicts(call_of(Direction::send, 509, 10)));
  pending.close();
  EXPECT_FALSE(pending.open(1));
  EXPECT_FALSE(pending.conflicts(call_of(Direction::receive, 109, 1))) << "the group has ended";
}

TEST(Mailbox, AwaitingWordsDifferByMessage) {
  std::set<std::uint64_t> seen;
  for (const std::uint64_t number : {0u, 15u, 16u, 1'000'000u}) {
    for (const std::uint64_t count : {0u, 1u, 100u, 101u, 1u << 20, (1u << 20) + 1}) {
      for (const std::uint8_t type : {hcclInt8, hcclFloat32, hcclBfloat16}) {
        EXPECT_NE(awaiting(number, count, type), 0) << "zero means that nothing is awaited";
        EXPECT_TRUE(seen.insert(awaiting(number, count, type)).second);
      }
    }
  }
}

TEST(PendingMessages, RemembersItemsThatCannotBlock) {
  PendingMessages pending;
  const std::vector<PointToPoint> calls(3, call_of(Direction::send, 0, 8));
  EXPECT_FALSE(pending.open(1));
  pending.push_back(item_of(calls[0]));
  std::size_t stuck_from = 0;
  std::size_t checked = 0;
  const auto cannot_block = [&](const MessageItem& item) {
    ++checked;
    return static_cast<std::size_t>(item.call - calls.data()) < stuck_from;
  };
  EXPECT_FALSE(pending.none_can_block(cannot_block));
  stuck_from = 1;
  EXPECT_TRUE(pending.none_can_block(cannot_block));
  EXPECT_EQ(checked, 2);
  pending.push_back(item_of(calls[1]));
  pending.end_group();
  EXPECT_FALSE(pending.none_can_block(cannot_block));
  pending.close();
  EXPECT_TRUE(pending.open(1));
  EXPECT_FALSE(pending.none_can_block(cannot_block));
  stuck_from = 2;
  EXPECT_TRUE(pending.none_can_block(cannot_block));
  pending.close();
  EXPECT_FALSE(pending.open(1));
  pending.push_back(item_of(calls[2]));
  EXPECT_FALSE(pending.none_can_block(cannot_block)) << "a new item in the place of an ended one";
}

TEST(PendingMessages, RemovesGroupThatCannotBegin) {
  PendingMessages pending;
  const std::vector calls{call_of(Direction::send, 0, 8), call_of(Direction::send, 100, 8),
                          call_of(Direction::receive, 200, 8)};
  EXPECT_FALSE(pending.open(1));
  pending.push_back(item_of(calls[0]));
  pending.push_back(item_of(calls[1]));
  pending.push_back(item_of(calls[2]));
  pending.take_back(2);
  EXPECT_EQ(pending.groups_ahead(), 0);
  EXPECT_EQ(pending.next_send(), nullptr);
  EXPECT_EQ(pending.next_receive(), nullptr);
  EXPECT_FALSE(pending.conflicts(call_of(Direction::receive, 100, 8)));
  pending.close();
  EXPECT_FALSE(pending.open(1));
}

// The items of the current group must not move, and conflicts must be found, regardless of how many
// groups have ended before.
TEST(PendingMessages, KeepsItemsInPlaceUntilGroupEnds) {
  PendingMessages pending;
  std::vector<PointToPoint> calls;
  for (std::uint64_t number = 0; number < 2'000; ++number)
    calls.push_back(call_of(Direction::send, 100 * number, 10));
  std::size_t next = 0;
  for (std::size_t turn = 0; turn < 1'500; ++turn) {
    if (!pending.open(1)) pending.push_back(item_of(calls[next++]));
    const MessageItem* const current = pending.current().data();
    while (pending.has_room_for(1)) {
      pending.push_back(item_of(calls[next++]));
      pending.end_group();
    }
    ASSERT_EQ(pending.current().data(), current);
    ASSERT_EQ(current->call, &calls[turn]);
    ASSERT_TRUE(pending.conflicts(call_of(Direction::receive, 100 * turn, 1)));
    ASSERT_TRUE(pending.conflicts(call_of(Direction::receive, 100 * (next - 1), 1)));
    ASSERT_FALSE(turn != 0 && pending.conflicts(call_of(Direction::receive, 100 * (turn - 1), 1)));
    pending.close();
  }
}

// The groups in flight, from first to last.
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
  // Appends up to three random groups to `pending`, as long as there is room.
  void begin_some(PendingMessages& pending, std::mt19937& random) {
    for (std::size_t more = random() % 4; more != 0; --more) {
      const Calls& behind = make(random);
      if (!pending.has_room_for(behind.size())) return groups_.pop_back();
      put(pending, behind);
      pending.end_group();
    }
  }
  static void put(PendingMessages& pending, const Calls& group) {
    for (const PointToPoint& call : group) pending.push_back(item_of(call));
  }
  [[nodiscard]] std::deque<Calls>& all() { return groups_; }

 private:
  std::deque<Calls> groups_;
};

void advance_some(PendingMessages& pending, std::mt19937& random) {
  for (MessageItem* item = pending.next_send(); item != nullptr && random() % 4 != 0;
       item = pending.next_send()) {
    EXPECT_TRUE(item->sends());
    item->state = MessageItem::State::offered;
  }
  for (MessageItem* item = pending.next_receive(); item != nullptr && random() % 4 != 0;
       item = pending.next_receive()) {
    EXPECT_FALSE(item->sends());
    item->state = MessageItem::State::done;
  }
}

// Compares PendingMessages with a plain list of groups under random use. Groups must end in the
// order in which they began.
TEST(PendingMessages, KeepsItemsInOrder) {
  std::mt19937 random(7);
  PendingMessages pending;
  Groups groups;
  for (int turn = 0; turn < 20'000; ++turn) {
    const bool begun = !groups.all().empty();
    const Groups::Calls& group = begun ? groups.all().front() : groups.make(random);
    ASSERT_EQ(pending.open(group.size()), begun);
    if (!begun) Groups::put(pending, group);
    ASSERT_TRUE(std::ranges::equal(
        pending.current(), group,
        [](const MessageItem& item, const PointToPoint& call) { return item.call == &call; }));
    groups.begin_some(pending, random);
    EXPECT_EQ(pending.groups_ahead(), groups.all().size() - 1);
    advance_some(pending, random);
    if (random() % 8 == 0) continue;  // the next turn resumes the group
    pending.close();
    groups.all().pop_front();
  }
}

}  // namespace
}  // namespace hccl::node
