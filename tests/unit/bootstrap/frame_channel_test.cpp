// SPDX-License-Identifier: Apache-2.0
// Frames with descriptors over a pair of unix sockets, whole, in pieces, and broken.
#include "bootstrap/frame_channel.h"

#include "base/peer_process.h"
#include "bootstrap/messages.h"
#include "bootstrap/socket_owner.h"
#include "joining_ranks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::bootstrap::test {
namespace {

class Channel : public testing::Test {
 protected:
  Channel()
      : ends_(make_pair()),
        left_(std::move(ends_[0]), 1 << 22),
        right_(std::move(ends_[1]), 1 << 22) {}

  static std::array<FileDescriptor, 2> make_pair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  }

  std::optional<Frame> next() {
    for (int i = 0; i < 10'000; ++i) {
      left_.flush();
      std::optional<Frame> frame = right_.receive();
      if (frame || right_.closed()) return frame;
    }
    return std::nullopt;
  }

  std::array<FileDescriptor, 2> ends_;
  FrameChannel left_;
  FrameChannel right_;
};

TEST_F(Channel, CarriesDescriptorsWithTheirFrames) {
  for (int i = 0; i < 50; ++i) {
    const FileDescriptor one = memory_with(i);
    const FileDescriptor two = memory_with(-i);
    left_.send(FrameType::entry, Bytes(static_cast<std::size_t>(i)), {one.get(), two.get()});
    left_.send(FrameType::go, {});
  }
  for (int i = 0; i < 50; ++i) {
    const auto frame = next();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->payload.size(), static_cast<std::size_t>(i));
    ASSERT_EQ(frame->descriptors.size(), 2U);
    EXPECT_EQ(value_in(frame->descriptors[0]), i);
    EXPECT_EQ(value_in(frame->descriptors[1]), -i);
    EXPECT_NE(fcntl(frame->descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(next()->type, FrameType::go);
  }
}

TEST_F(Channel, CarriesMoreThanTheSocketHolds) {
  Bytes large(3'000'000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7 % 251);
  const FileDescriptor memory = memory_with(5);
  left_.send(FrameType::contribution, large, {memory.get()});
  EXPECT_FALSE(left_.flush());
  EXPECT_NE(left_.events() & POLLOUT, 0);
  const auto frame = next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->payload, large);
  EXPECT_EQ(frame->descriptors.size(), 1U);
  EXPECT_TRUE(left_.flush());
}

TEST_F(Channel, WhatWasSaidBeforeTheEndIsHeard) {
  left_.send(FrameType::go, {});
  left_ = FrameChannel(FileDescriptor(), 0);
  right_.send(FrameType::ready, {});
  EXPECT_EQ(next()->type, FrameType::go);
  EXPECT_FALSE(next());
  EXPECT_TRUE(right_.closed());
  EXPECT_FALSE(right_.broke_rules());
}

TEST_F(Channel, AFrameTooLargeOrWithoutItsDescriptorsBreaksTheRules) {
  const Bytes lie = encode_frame(FrameType::entry, {}, 1);
  ASSERT_EQ(send(left_.fd(), lie.data(), lie.size(), 0), static_cast<ssize_t>(lie.size()));
  EXPECT_FALSE(next());
  EXPECT_TRUE(right_.closed());
  EXPECT_TRUE(right_.broke_rules());
}

class SealedChannel : public Channel {
 protected:
  SealedChannel() {
    const Bytes key(16, std::byte{3});
    right_.authenticate(FrameSeal(FrameSeal::Role::rank, key, {}, {}));
    sealed_.authenticate(FrameSeal(FrameSeal::Role::server, key, {}, {}));
  }

  // The other end of right_, as left_ is, but it gives its frames codes.
  FrameChannel sealed_{FileDescriptor(dup(left_.fd())), 1 << 22};
};

TEST_F(SealedChannel, ARefusalWithoutACodeIsHeardBeforeAnyOtherFrame) {
  left_.send(FrameType::refusal, serialize(Refusal{Refusal::other_key}));
  const auto frame = next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(parse<Refusal>(frame->payload), Refusal{Refusal::other_key});
}

TEST_F(SealedChannel, ARefusalWithoutACodeIsForgedBehindAFrameThatHadOne) {
  sealed_.send(FrameType::welcome, {});
  ASSERT_TRUE(next());
  left_.send(FrameType::refusal, serialize(Refusal{Refusal::other_key}));
  EXPECT_FALSE(next());
  EXPECT_TRUE(right_.forged());
}

TEST_F(Channel, PeersAreKnownByTheKernel) {
  EXPECT_EQ(peer_user(left_.fd()), geteuid());
  const FileDescriptor process = peer_process(left_.fd());
  ASSERT_TRUE(process.valid());
  EXPECT_FALSE(has_exited(process));
  EXPECT_NE(own_pid_namespace(), 0U);
  EXPECT_NE(tcp_peer_owner(left_.fd()).knowledge, SocketOwner::Knowledge::known);
}

}  // namespace
}  // namespace hccl::bootstrap::test
