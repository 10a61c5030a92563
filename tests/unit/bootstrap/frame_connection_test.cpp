// SPDX-License-Identifier: Apache-2.0
// Tests frames with descriptors over a pair of Unix sockets: complete frames, frames in pieces, and
// malformed frames.
#include "bootstrap/frame_connection.h"

#include "base/peer_process.h"
#include "bootstrap/messages.h"
#include "bootstrap/socket_owner.h"
#include "crypto/tls_session.h"
#include "joining_ranks.h"

#include <array>
#include <functional>
#include <span>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::bootstrap::test {
namespace {

class Frames : public testing::Test {
 protected:
  Frames() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    left_ = connection_over({FileDescriptor(ends[0])});
    right_ = connection_over({FileDescriptor(ends[1])});
  }

  std::shared_ptr<FrameConnection> connection_over(FrameConnection::Detached detached) {
    return std::make_shared<FrameConnection>(
        loop_, std::move(detached),
        FrameConnection::Limits{.payload = 1 << 22, .descriptors = 1024});
  }

  // Returns the next frame that arrives at right_. Returns nothing if the connection has ended, or
  // if no frame arrives within kPatience.
  std::optional<Frame> next() {
    const Deadline deadline = Deadline::after(kPatience);
    while (!deadline.expired()) {
      std::optional<Frame> frame = right_->receive();
      if (frame || right_->ended()) return frame;
      loop_.run_one(deadline);
    }
    return std::nullopt;
  }

  EventLoop loop_;
  std::shared_ptr<FrameConnection> left_;
  std::shared_ptr<FrameConnection> right_;
};

TEST_F(Frames, DeliversDescriptorsWithTheirFrames) {
  for (int i = 0; i < 50; ++i) {
    const FileDescriptor one = memory_with(i);
    const FileDescriptor two = memory_with(-i);
    left_->send(FrameType::entry, Bytes(static_cast<std::size_t>(i)), {one.get(), two.get()});
    left_->send(FrameType::go, {});
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

TEST_F(Frames, DeliversFramesLargerThanSocketBuffer) {
  Bytes large(3'000'000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7 % 251);
  const FileDescriptor memory = memory_with(5);
  left_->send(FrameType::contribution, large, {memory.get()});
  EXPECT_TRUE(left_->has_unsent());
  const auto frame = next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->payload, large);
  EXPECT_EQ(frame->descriptors.size(), 1U);
  EXPECT_FALSE(left_->has_unsent());
}

TEST_F(Frames, DeliversFramesSentBeforeTheEnd) {
  left_->send(FrameType::go, {});
  left_->close();
  right_->send(FrameType::ready, {});
  EXPECT_EQ(next()->type, FrameType::go);
  EXPECT_FALSE(next());
  EXPECT_TRUE(right_->ended());
  EXPECT_FALSE(right_->broke_rules());
}

TEST_F(Frames, ResumesAfterDetaching) {
  left_->send(FrameType::ready, Bytes(10));
  left_->send(FrameType::go, Bytes(20));
  EXPECT_EQ(next()->payload.size(), 10U);
  right_ = connection_over(right_->detach());
  EXPECT_EQ(next()->payload.size(), 20U);
  left_->send(FrameType::table, {});
  EXPECT_EQ(next()->type, FrameType::table);
}

TEST_F(Frames, FinishesAfterSendingEverything) {
  bool finished = false;
  const Bytes large(3'000'000);
  left_->send(FrameType::contribution, large);
  left_->finish([&] { finished = true; });
  left_.reset();
  EXPECT_FALSE(finished);
  EXPECT_EQ(next()->payload, large);
  EXPECT_TRUE(finished);
  EXPECT_FALSE(next());
  EXPECT_FALSE(right_->broke_rules());
}

TEST_F(Frames, RejectsFrameWithoutItsDescriptors) {
  const Bytes lie = encode_frame(FrameType::entry, {}, 1);
  ASSERT_EQ(send(left_->fd(), lie.data(), lie.size(), 0), static_cast<ssize_t>(lie.size()));
  EXPECT_FALSE(next());
  EXPECT_TRUE(right_->ended());
  EXPECT_TRUE(right_->broke_rules());
}

class EncryptedFrames : public Frames {
 protected:
  // Encrypts both ends with these keys.
  void encrypt(std::span<const std::byte> left, std::span<const std::byte> right) {
    left_ = connection_over({left_->detach().socket,
                             {},
                             std::make_shared<crypto::TlsSession>(crypto::TlsRole::client, left)});
    right_ =
        connection_over({right_->detach().socket,
                         {},
                         std::make_shared<crypto::TlsSession>(crypto::TlsRole::server, right)});
  }
  // Runs the loop until the condition holds. Returns false if it does not within kPatience.
  bool run_until(const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::after(kPatience);
    while (!condition() && !deadline.expired()) {
      static_cast<void>(left_->receive());
      loop_.run_one(deadline.within(std::chrono::milliseconds(10)));
    }
    return condition();
  }

  const Bytes key_ = Bytes(32, std::byte{3});
};

TEST_F(EncryptedFrames, ArriveInOrderAndWhole) {
  encrypt(key_, key_);
  Bytes large(3'000'000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7 % 251);
  static_cast<void>(left_->receive());
  left_->send(FrameType::hello, Bytes(10));
  left_->send(FrameType::table, large);
  EXPECT_EQ(next()->payload.size(), 10U);
  EXPECT_EQ(next()->payload, large);
  EXPECT_TRUE(right_->is_established());
}

TEST_F(EncryptedFrames, ResumeAfterDetaching) {
  encrypt(key_, key_);
  static_cast<void>(left_->receive());
  left_->send(FrameType::ready, Bytes(10));
  left_->send(FrameType::go, Bytes(20));
  EXPECT_EQ(next()->payload.size(), 10U);
  right_ = connection_over(right_->detach());
  EXPECT_EQ(next()->payload.size(), 20U);
  left_->send(FrameType::table, {});
  EXPECT_EQ(next()->type, FrameType::table);
}

TEST_F(EncryptedFrames, NeedTheSameKey) {
  encrypt(key_, Bytes(32, std::byte{4}));
  left_->send(FrameType::hello, Bytes(10));
  static_cast<void>(left_->receive());
  EXPECT_FALSE(next());
  EXPECT_TRUE(right_->lacks_key()) << right_->why();
  EXPECT_TRUE(run_until([&] { return left_->ended(); }));
  EXPECT_TRUE(left_->lacks_key()) << left_->why();
}

TEST_F(EncryptedFrames, AreRefusedIfChanged) {
  encrypt(key_, key_);
  static_cast<void>(left_->receive());
  left_->send(FrameType::hello, {});
  ASSERT_TRUE(next());
  const std::array<std::byte, 30> forged{std::byte{23}, std::byte{3}, std::byte{3}, std::byte{0},
                                         std::byte{25}};
  ASSERT_EQ(send(left_->fd(), forged.data(), forged.size(), 0),
            static_cast<ssize_t>(forged.size()));
  EXPECT_FALSE(next());
  EXPECT_TRUE(right_->forged()) << right_->why();
}

TEST_F(EncryptedFrames, RefuseOtherProtocols) {
  right_ = connection_over({right_->detach().socket,
                            {},
                            std::make_shared<crypto::TlsSession>(crypto::TlsRole::server, key_)});
  const std::string http = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(send(left_->fd(), http.data(), http.size(), 0), static_cast<ssize_t>(http.size()));
  EXPECT_FALSE(next());
  EXPECT_TRUE(right_->broke_rules());
  EXPECT_EQ(right_->why(), FrameConnection::kNotTls);
}

TEST_F(Frames, IdentifiesPeerThroughKernel) {
  EXPECT_EQ(peer_user(left_->fd()), geteuid());
  const FileDescriptor process = peer_process(left_->fd());
  ASSERT_TRUE(process.valid());
  EXPECT_FALSE(has_exited(process));
  EXPECT_NE(own_pid_namespace(), 0U);
  EXPECT_NE(tcp_peer_owner(left_->fd()).knowledge, SocketOwner::Knowledge::known);
}

}  // namespace
}  // namespace hccl::bootstrap::test
