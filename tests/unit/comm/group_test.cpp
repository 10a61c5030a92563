// SPDX-License-Identifier: Apache-2.0
// Tests groups of calls, and the lists of their messages.

#include "comm/group.h"

#include "comm/message_list.h"
#include "fake_backend.h"

#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::comm {
namespace {

// Tests the order in which a group queues its calls.

using Log = std::vector<std::string>;

class Groups : public testing::Test {
 protected:
  Groups() {
    handle_ = communicators().insert(fake_.communicator);
    for (int i = 0; i < 2; ++i) {
      streams_.push_back(fake_.device->create_stream());
      stream_handles_.push_back(stream_table_->insert(streams_.back()));
    }
  }
  ~Groups() override { static_cast<void>(communicators().remove(handle_)); }

  template <class Call>
  void keep(std::size_t stream, const Call& call) {
    Group::current()->keep(communicators().hold(handle_),
                           stream_table_->hold(stream_handles_[stream]), call);
  }

  FakeCommunicator fake_;
  std::uint64_t handle_ = 0;
  HandleTable<device::Stream>* stream_table_ =  // lives as long as the process
      new HandleTable<device::Stream>(HandleKind::stream);
  std::vector<std::shared_ptr<device::Stream>> streams_;
  std::vector<std::uint64_t> stream_handles_;
  const std::uint64_t memory_ = fake_.device->arena().allocate(4096, "a test's buffer");
};

TEST_F(Groups, QueueNothingBeforeEnd) {
  Group::start();
  keep(0, message(Direction::send, 1, memory_));
  keep(0, all_reduce(1, memory_, memory_));
  EXPECT_EQ(fake_.log_after(streams_[0]), Log());
  Group::end();
  EXPECT_EQ(fake_.log_after(streams_[0]).size(), 4U);
}

TEST_F(Groups, RunMessagesOfOneStreamConcurrently) {
  Group::start();
  keep(0, message(Direction::send, 1, memory_));
  keep(0, message(Direction::receive, 2, memory_));
  Group::end();
  EXPECT_EQ(fake_.log_after(streams_[0]),
            Log({"number a send(1, float) to rank 1", "number a recv(1, float) from rank 2",
                 "exchange a send(1, float) to rank 1, recv(1, float) from rank 2 before lane 0"}));
}

TEST_F(Groups, NumberMessagesInCallOrderAcrossStreams) {
  Group::start();
  keep(0, message(Direction::send, 1, memory_, 1));
  keep(1, message(Direction::send, 1, memory_, 2));
  keep(0, message(Direction::send, 1, memory_, 3));
  Group::end();
  static_cast<void>(streams_[1]->synchronize());
  const Log log = fake_.log_after(streams_[0]);
  EXPECT_EQ(Log(log.begin(), log.begin() + 3),
            Log({"number a send(1, float) to rank 1", "number b send(2, float) to rank 1",
                 "number a send(3, float) to rank 1"}));
}

TEST_F(Groups, QueueCollectivesBeforeMessagesOfStream) {
  Group::start();
  keep(0, message(Direction::send, 1, memory_));
  keep(0, all_reduce(1, memory_, memory_));
  keep(0, all_reduce(2, memory_, memory_));
  Group::end();
  const Log log = fake_.log_after(streams_[0]);
  ASSERT_EQ(log.size(), 5U);
  EXPECT_EQ(log[2].substr(0, 31), "run a all_reduce(1, float, sum)");
  EXPECT_EQ(log[3].substr(0, 31), "run a all_reduce(2, float, sum)");
  EXPECT_EQ(log[4], "exchange a send(1, float) to rank 1 after lane 0");
}

TEST_F(Groups, QueueTheRestDespiteUnmatchedMessageToSelf) {
  Group::start();
  keep(0, message(Direction::send, 0, memory_));
  keep(1, all_reduce(1, memory_, memory_));
  EXPECT_THROW(Group::end(), Error);
  static_cast<void>(streams_[1]->synchronize());
  const Log log = fake_.log_after(streams_[0]);
  ASSERT_FALSE(log.empty());
  EXPECT_EQ(log.back().substr(0, 31), "run a all_reduce(1, float, sum)");
}

// Tests message lists of different lengths.

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

TEST(MessageList, KeepsOrderForAnyCount) {
  for (int count = 0; count <= 9; ++count) EXPECT_EQ(peers(numbers(count)), up_to(count)) << count;
}

TEST(MessageList, CanGrowAfterErasing) {
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

TEST(MessageList, IsEmptyAfterMove) {
  for (int count = 0; count <= 5; ++count) {
    MessageList from = numbers(count);
    MessageList to(std::move(from));
    EXPECT_EQ(peers(to), up_to(count));
    EXPECT_EQ(peers(from), up_to(0));  // NOLINT(bugprone-use-after-move): tests the state
    from = std::move(to);
    EXPECT_EQ(peers(from), up_to(count));
    EXPECT_EQ(peers(to), up_to(0));  // NOLINT(bugprone-use-after-move)
  }
}

}  // namespace
}  // namespace hccl::comm
