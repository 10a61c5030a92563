// SPDX-License-Identifier: Apache-2.0
// How a queue pair ends: by a failure of whatever kind, by being cut, or after the last write.
#include "base/file_descriptor.h"
#include "connected_pairs.h"
#include "verbs/verbs_errors.h"

#include <array>
#include <atomic>
#include <thread>

#include <sys/socket.h>

namespace hccl::verbs {
namespace {

class EndingPairs : public test::ConnectedPairs {
 protected:
  void SetUp() override {
    test::ConnectedPairs::SetUp();
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    socket_ = FileDescriptor(ends[0]);
    peers_socket_ = FileDescriptor(ends[1]);
  }
  void drain(Deadline deadline = Deadline::never()) { near().drain(deadline, socket_.get()); }

  FileDescriptor socket_;
  FileDescriptor peers_socket_;
};

TEST_F(EndingPairs, EveryStatusIsAFailureWithItsText) {
  for (int number = 1; number < 32; ++number) {
    const auto status = static_cast<ibv_wc_status>(number);
    start(kDepths);
    say(1);
    say(2);
    wire_.fail(near().number(), status, 129);
    EXPECT_TRUE(near().poll().empty());
    EXPECT_EQ(near().failure().text, describe_completion(status, 129, test::ends_between(0, 3)));
    EXPECT_EQ(near().failure().peer_lost, severity_of(status) == Severity::peer_lost) << number;
    EXPECT_TRUE(near().poll().empty()) << "it stays so";
  }
}

TEST_F(EndingPairs, WhatHasComeBeforeTheFailureIsHeard) {
  say(7);
  far().write({}, 0, {}, 8);
  wire_.deliver(far().number());
  wire_.fail(near().number(), IBV_WC_RETRY_EXC_ERR);
  const auto received = near().poll();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received.front(), 8U);
  EXPECT_TRUE(near().failure().peer_lost);
}

TEST_F(EndingPairs, TheFirstFailureIsTheOne) {
  write(1000, 1);
  write(1000, 2);
  wire_.fail(near().number(), IBV_WC_REM_ACCESS_ERR, 3);
  static_cast<void>(hear(near()));
  near().cut();
  wire_.faults.poll = true;
  EXPECT_TRUE(near().poll().empty());
  EXPECT_EQ(near().failure().text,
            describe_completion(IBV_WC_REM_ACCESS_ERR, 3, test::ends_between(0, 3)));
}

TEST_F(EndingPairs, AQueueThatCannotBeReadIsAFailureOfOurs) {
  wire_.faults.poll = true;
  EXPECT_TRUE(near().poll().empty());
  EXPECT_EQ(near().failure().text,
            "the completion queue of fake0 cannot be read; see the kernel's log");
  EXPECT_FALSE(near().failure().peer_lost);
}

TEST_F(EndingPairs, ADeviceThatCannotRingSaysSo) {
  wire_.faults.notify = true;
  EXPECT_FALSE(near().arm());
  wire_.faults.notify = false;
  EXPECT_TRUE(near().arm());
}

TEST_F(EndingPairs, NothingComesOrGoesAfterACut) {
  write(1000, 1);
  far().write(std::span(far_->memory).first(1000), far_->registration.local_key(), near_->target(),
              2);
  near().cut();
  EXPECT_EQ(wire_.state(near().number()), IBV_QPS_ERR);
  far_->memory.assign(far_->memory.size(), std::byte{0x11});
  wire_.run();
  EXPECT_TRUE(hear(far()).empty());
  EXPECT_EQ(near_->memory, std::vector<std::byte>(4096, std::byte{0xA5}));
  EXPECT_EQ(far_->memory, std::vector<std::byte>(4096, std::byte{0x11}));
  EXPECT_TRUE(near().failure().peer_lost);
  EXPECT_EQ(near().failure().text, "this rank aborted its queue pair because a call failed");
  EXPECT_TRUE(near().poll().empty());
  EXPECT_EQ(near().failure().text, "this rank aborted its queue pair because a call failed");
  near().cut();
  // The far end notices after its retries.
  wire_.fail(far().number(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(far().poll().empty());
  EXPECT_TRUE(far().failure().peer_lost);
}

TEST_F(EndingPairs, DrainingEndsWhenThePeerHasEverything) {
  for (std::uint32_t i = 0; i < 20; ++i) say(i);
  std::atomic<bool> over{false};
  std::thread network([&] {
    while (!over) {
      wire_.step();
      std::this_thread::yield();
    }
  });
  drain();
  over = true;
  network.join();
  EXPECT_EQ(near().free_writes(), kDepths.writes);
  EXPECT_TRUE(near().failure().text.empty());
  EXPECT_EQ(hear(far()).size(), 20U);
}

TEST_F(EndingPairs, DrainingNeedsNoWaitWhereAllIsDone) {
  wire_.prompt = true;
  say(1);
  drain();
  EXPECT_EQ(hear(far()).size(), 1U) << "the last write is none of the peer's business";
}

TEST_F(EndingPairs, DrainingGivesAPeerUpThatDoesNotAnswer) {
  say(1);
  drain(Deadline::after(std::chrono::milliseconds(50)));
  EXPECT_LT(near().completed(), 2U);
  EXPECT_TRUE(near().failure().text.empty());
}

TEST_F(EndingPairs, DrainingGivesAPeerUpThatHasHungUp) {
  say(1);
  peers_socket_.reset();
  drain();
  EXPECT_LT(near().completed(), 2U);
}

TEST_F(EndingPairs, DrainingEndsWithTheQueuePair) {
  say(1);
  std::thread network([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    wire_.fail(near().number(), IBV_WC_RETRY_EXC_ERR);
  });
  drain();
  network.join();
  EXPECT_TRUE(near().failure().peer_lost);
  drain();  // there is nothing to wait for
}

TEST_F(EndingPairs, DrainingIsNoUseWhereNothingCanBePostedOrRung) {
  say(1);
  wire_.faults.post_send = EINVAL;
  drain();
  wire_.faults.post_send = 0;
  wire_.faults.notify = true;
  drain();
  wire_.faults.notify = false;
  start(kDepths);
  while (near().free_writes() > 0) say(0);
  drain();
}

}  // namespace
}  // namespace hccl::verbs
