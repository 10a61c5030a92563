// SPDX-License-Identifier: Apache-2.0
// Tests how streams are connected: the handshake of both sides, and the listener that accepts
// connections.

#include "transport/handshake.h"

#include "base/error.h"
#include "shm/unix_socket.h"
#include "transport/dialer.h"
#include "transport/listener.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace hccl::transport {
namespace {

// Tests both sides of the handshake against each other, byte by byte, and against malicious peers.

std::shared_ptr<const SecretBytes> secret_of(int value) {
  return std::make_shared<const SecretBytes>(16, static_cast<std::byte>(value));
}

Membership member(int rank) {
  Membership membership;
  membership.secret = secret_of(1);
  membership.communicator = 3;
  membership.rank = rank;
  membership.size = 8;
  return membership;
}

const StreamKey kKey{2, 5, {7, 1}};

// Passes `bytes` to a side, one byte at a time, until the side refuses. Returns the side's answer.
template <class Side>
Bytes answer_to(Side& side, const Bytes& bytes) {
  Bytes answer;
  for (const std::byte& byte : bytes) {
    EXPECT_GT(side.wanted(), 0U);
    const Bytes part = side.take({&byte, 1});
    answer.insert(answer.end(), part.begin(), part.end());
    if (side.state() == Handshake::State::refused) break;
  }
  return answer;
}

struct Conversation {
  ConnectorHandshake connector;
  AcceptorHandshake acceptor;

  // Passes messages until the acceptor is done or a side refuses.
  void run() {
    Bytes answer = answer_to(acceptor, connector.hello());
    while (!answer.empty()) {
      const Bytes next = answer_to(connector, answer);
      answer = answer_to(acceptor, next);
    }
  }
  // Gives the acceptor's verdict to the connector.
  void conclude(Verdict verdict) { answer_to(connector, acceptor.answer(verdict)); }
};

Conversation conversation_between(const Membership& connector, const Membership& acceptor,
                                  const StreamKey& key = kKey) {
  return {ConnectorHandshake(connector, key), AcceptorHandshake(acceptor)};
}

TEST(Handshake, BothSidesAuthenticate) {
  Conversation conversation = conversation_between(member(2), member(5));
  conversation.run();
  EXPECT_EQ(conversation.acceptor.state(), Handshake::State::done);
  EXPECT_TRUE(conversation.acceptor.key() == kKey);
  EXPECT_EQ(conversation.connector.state(), Handshake::State::in_progress);
  conversation.conclude(Verdict::accepted);
  EXPECT_EQ(conversation.connector.state(), Handshake::State::done);
  EXPECT_EQ(conversation.connector.wanted(), 0U) << "the next bytes belong to the stream";
  EXPECT_EQ(conversation.connector.stream().protection, Protection::off);
  EXPECT_TRUE(conversation.connector.stream().keys.sending.empty());
}

TEST(Handshake, SecondClaimIsRefused) {
  Conversation conversation = conversation_between(member(2), member(5));
  conversation.run();
  conversation.conclude(Verdict::claimed);
  EXPECT_EQ(conversation.connector.state(), Handshake::State::refused);
}

TEST(Handshake, StrongerProtectionOfBothIsUsed) {
  for (const auto& [connector, acceptor] : {std::pair{Protection::off, Protection::full},
                                            {Protection::full, Protection::integrity},
                                            {Protection::integrity, Protection::off}}) {
    Conversation conversation{ConnectorHandshake(member(2), kKey, connector),
                              AcceptorHandshake(member(5), acceptor)};
    conversation.run();
    conversation.conclude(Verdict::accepted);
    const ProtectedStream one = conversation.connector.stream();
    const ProtectedStream other = conversation.acceptor.stream();
    EXPECT_EQ(one.protection, std::max(connector, acceptor));
    EXPECT_EQ(other.protection, one.protection);
    EXPECT_EQ(one.keys.sending.size(), 32U);
    EXPECT_EQ(one.keys.sending, other.keys.receiving);
    EXPECT_EQ(one.keys.receiving, other.keys.sending);
    EXPECT_NE(one.keys.receiving, one.keys.sending);
  }
}

TEST(Handshake, BothSidesDetectWrongSecret) {
  Membership other = member(5);
  other.secret = secret_of(2);
  Conversation conversation = conversation_between(member(2), other);
  conversation.run();
  for (const Handshake* side :
       std::initializer_list<const Handshake*>{&conversation.connector, &conversation.acceptor}) {
    EXPECT_EQ(side->state(), Handshake::State::refused);
    EXPECT_EQ(side->why(), "does not know the communicator's secret");
  }
}

TEST(Handshake, ChangedByteIsRefused) {
  const std::size_t hello_size = ConnectorHandshake(member(2), kKey).hello().size();
  constexpr std::size_t kLegacyVersion = 2;  // a byte that TLS 1.3 ignores
  for (std::size_t at = 0; at < hello_size; ++at) {
    if (at == kLegacyVersion) continue;
    Conversation conversation = conversation_between(member(2), member(5));
    Bytes hello = conversation.connector.hello();
    hello[at] ^= std::byte{1};
    answer_to(conversation.acceptor,
              answer_to(conversation.connector, answer_to(conversation.acceptor, hello)));
    EXPECT_NE(conversation.acceptor.state(), Handshake::State::done) << "byte " << at;
  }
}

TEST(Handshake, ReplayIsRefused) {
  Conversation first = conversation_between(member(2), member(5));
  const Bytes response =
      answer_to(first.connector, answer_to(first.acceptor, first.connector.hello()));
  AcceptorHandshake again(member(5));
  answer_to(again, first.connector.hello());
  answer_to(again, response);
  EXPECT_EQ(again.state(), Handshake::State::refused);
}

TEST(Handshake, ImpossibleStreamIsRefused) {
  for (const StreamKey& key :
       {StreamKey{5, 5, {}}, StreamKey{6, 5, {}}, StreamKey{-1, 5, {}}, StreamKey{2, 4, {}}}) {
    Conversation conversation = conversation_between(member(2), member(5), key);
    conversation.run();
    EXPECT_EQ(conversation.acceptor.state(), Handshake::State::refused);
  }
  Membership other = member(2);
  other.communicator = 4;
  Conversation conversation = conversation_between(other, member(5));
  conversation.run();
  EXPECT_EQ(conversation.acceptor.state(), Handshake::State::refused);
}

TEST(Handshake, GarbageIsRefusedAtFirstByte) {
  AcceptorHandshake acceptor(member(5));
  const std::byte letter{'G'};
  static_cast<void>(acceptor.take({&letter, 1}));
  EXPECT_EQ(acceptor.state(), Handshake::State::refused);
}

// Tests a listener that several threads of a rank share. Makes the threads' calls one at a time.

Membership member_for(int rank) { return {.secret = secret_of(3), .rank = rank, .size = 8}; }

constexpr std::size_t kPending = 8;

class SharedListener : public testing::Test {
 protected:
  SharedListener() : name_(random_secret()) {
    std::vector<FileDescriptor> sockets;
    sockets.push_back(shm::listen_on(name_));
    listener_ = std::make_shared<Listener>(
        std::move(sockets), member_for(5), ConnectionLimits{.pending = kPending},
        SocketFamily{.name = "test", .describe = [](int, const SocketAddress&) {
                       return std::string("somebody");
                     }});
  }

  [[nodiscard]] Dialer dial(const StreamKey& key) const {
    return {
        {{shm::abstract_address(name_), "here"}}, member_for(key.from), key, ConnectionLimits{}};
  }
  // Returns true if a thread that sleeps until the connection arrives would be woken now.
  static bool would_wake(InboundConnection& claim) {
    SleepPlan plan;
    claim.plan_sleep(plan);
    return poll(plan.descriptors.data(), plan.descriptors.size(), 0) > 0;
  }

  shm::SocketName name_;
  std::shared_ptr<Listener> listener_;
};

TEST_F(SharedListener, PollingThreadWakesOwnerOfArrivedStream) {
  const StreamKey key{1, 5, {}};
  InboundConnection waiting(listener_, key);
  InboundConnection other(listener_, {2, 5, {}});
  EXPECT_FALSE(would_wake(waiting));
  Dialer dialer = dial(key);
  std::optional<Connected> socket;
  for (int i = 0; i < 1000 && !socket; ++i) {
    socket = dialer.poll();
    EXPECT_FALSE(other.poll().has_value());
  }
  ASSERT_TRUE(socket.has_value());
  EXPECT_TRUE(would_wake(waiting));
  EXPECT_TRUE(waiting.poll().has_value());
}

// A rank whose handshake has begun is not displaced by any number of silent connections.
TEST_F(SharedListener, SilentConnectionsDisplaceNoRank) {
  const StreamKey key{1, 5, {}};
  InboundConnection waiting(listener_, key);
  Dialer dialer = dial(key);
  for (int i = 0; i < 10 && !dialer.poll(); ++i) {
  }
  std::vector<FileDescriptor> silent;
  const auto connect_silently = [&] {
    const SocketAddress where = shm::abstract_address(name_);
    silent.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(silent.back().get(), where.get(), where.length), 0);
  };
  EXPECT_FALSE(waiting.poll().has_value()) << "the handshake has begun";
  for (std::size_t i = 0; i < 3 * kPending; ++i) {
    connect_silently();
    EXPECT_FALSE(waiting.poll().has_value());
  }
  static_cast<void>(dialer.poll());
  EXPECT_TRUE(waiting.poll().has_value()) << "the rank has to connect again";
}

TEST_F(SharedListener, StreamThatArrivesBeforeItsOwnerIsKept) {
  const StreamKey early{1, 5, {3, 3}};
  InboundConnection other(listener_, {2, 5, {}});
  Dialer dialer = dial(early);
  std::optional<Connected> socket;
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
