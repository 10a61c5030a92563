// SPDX-License-Identifier: Apache-2.0
// A listener that several threads of a rank share, looked at one call at a time.
#include "transport/listener.h"

#include "base/error.h"
#include "shm/unix_socket.h"
#include "transport/dialer.h"

#include <gtest/gtest.h>

namespace hccl::transport {
namespace {

Membership member_for(int rank) { return {.rank = rank, .size = 8}; }

class SharedListener : public testing::Test {
 protected:
  SharedListener() : name_(random_secret()) {
    std::vector<FileDescriptor> sockets;
    sockets.push_back(shm::listen_on(name_));
    listener_ = std::make_shared<Listener>(
        std::move(sockets), member_for(5), Limits{},
        SocketFamily{"test", [](int) { return std::string("somebody"); }, nullptr});
  }

  [[nodiscard]] Dialer dial(const StreamKey& key) const {
    return {{{shm::abstract_address(name_), "here"}}, member_for(key.from), key, Limits{}};
  }
  // Returns whether a thread that sleeps for the connection would be woken now.
  static bool would_wake(InboundConnection& claim) {
    SleepPlan plan;
    claim.plan_sleep(plan);
    return poll(plan.descriptors.data(), plan.descriptors.size(), 0) > 0;
  }

  shm::SocketName name_;
  std::shared_ptr<Listener> listener_;
};

TEST_F(SharedListener, WhoeverServesItRingsTheOneWhoseStreamHasCome) {
  const StreamKey key{1, 5, {}};
  InboundConnection waiting(listener_, key);
  InboundConnection other(listener_, {2, 5, {}});
  EXPECT_FALSE(would_wake(waiting));
  Dialer dialer = dial(key);
  std::optional<FileDescriptor> socket;
  for (int i = 0; i < 1000 && !socket; ++i) {
    socket = dialer.poll();
    EXPECT_FALSE(other.poll().has_value());
  }
  ASSERT_TRUE(socket.has_value());
  EXPECT_TRUE(would_wake(waiting));
  EXPECT_TRUE(waiting.poll().has_value());
}

TEST_F(SharedListener, AStreamThatComesBeforeItIsOpenedIsKept) {
  const StreamKey early{1, 5, {3, 3}};
  InboundConnection other(listener_, {2, 5, {}});
  Dialer dialer = dial(early);
  std::optional<FileDescriptor> socket;
  for (int i = 0; i < 1000 && !socket; ++i) {
    socket = dialer.poll();
    static_cast<void>(other.poll());
  }
  ASSERT_TRUE(socket.has_value());
  InboundConnection late(listener_, early);
  EXPECT_TRUE(late.poll().has_value());
  EXPECT_THROW(InboundConnection(listener_, early), Error);
}

}  // namespace
}  // namespace hccl::transport
