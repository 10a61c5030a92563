// SPDX-License-Identifier: Apache-2.0
// Tests connecting: the handshake of both sides, and the listener that accepts.

#include "transport/handshake.h"

#include "base/error.h"
#include "shm/unix_socket.h"
#include "transport/dialer.h"
#include "transport/listener.h"

#include <gtest/gtest.h>

namespace hccl::transport {
namespace {

// Tests both sides of the handshake against each other, byte by byte, and against peers that lie.

Membership member(int rank) {
  Membership membership;
  membership.secret.fill(std::byte{1});
  membership.communicator = 3;
  membership.rank = rank;
  membership.size = 8;
  return membership;
}

const StreamKey kKey{2, 5, {7, 1}};

// Passes `said` to a side byte by byte until it refuses. Returns the side's answer.
template <class Side>
Bytes answer_to(Side& side, const Bytes& said) {
  Bytes answer;
  for (const std::byte& byte : said) {
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

  void run() {
    const Bytes challenge = answer_to(acceptor, connector.hello());
    answer_to(acceptor, answer_to(connector, challenge));
  }
};

TEST(Handshake, BothSidesProveThemselves) {
  Conversation talk{{member(2), kKey}, AcceptorHandshake(member(5))};
  talk.run();
  EXPECT_EQ(talk.acceptor.state(), Handshake::State::done);
  EXPECT_TRUE(talk.acceptor.key() == kKey);
  EXPECT_EQ(talk.connector.state(), Handshake::State::in_progress);
  EXPECT_EQ(talk.connector.wanted(), 1U);  // no bytes of the stream that follows
  static_cast<void>(talk.connector.take(AcceptorHandshake::encode(Verdict::accepted)));
  EXPECT_EQ(talk.connector.state(), Handshake::State::done);
  EXPECT_EQ(talk.connector.wanted(), 0U);
}

TEST(Handshake, ASecondClaimIsToldSo) {
  Conversation talk{{member(2), kKey}, AcceptorHandshake(member(5))};
  talk.run();
  static_cast<void>(talk.connector.take(AcceptorHandshake::encode(Verdict::claimed)));
  EXPECT_EQ(talk.connector.state(), Handshake::State::refused);
}

TEST(Handshake, AnotherSecretIsNoticedByTheConnectorFirst) {
  Membership other = member(5);
  other.secret.fill(std::byte{2});
  Conversation talk{{member(2), kKey}, AcceptorHandshake(other)};
  talk.run();
  EXPECT_EQ(talk.connector.state(), Handshake::State::refused);
  EXPECT_EQ(talk.acceptor.state(), Handshake::State::in_progress);
}

TEST(Handshake, TheSecretIsNeverSaid) {
  Conversation talk{{member(2), kKey}, AcceptorHandshake(member(5))};
  const Bytes hello = talk.connector.hello();
  const Bytes challenge = answer_to(talk.acceptor, hello);
  const Bytes response = answer_to(talk.connector, challenge);
  const Secret secret = member(2).secret;
  for (const Bytes& said : {hello, challenge, response}) {
    EXPECT_TRUE(std::search(said.begin(), said.end(), secret.begin(), secret.end()) == said.end());
  }
}

TEST(Handshake, ChangedBytesAreRefused) {
  const std::size_t hello_size = ConnectorHandshake(member(2), kKey).hello().size();
  for (std::size_t at = 0; at < hello_size; ++at) {
    Conversation talk{{member(2), kKey}, AcceptorHandshake(member(5))};
    Bytes hello = talk.connector.hello();
    hello[at] ^= std::byte{1};
    answer_to(talk.acceptor, answer_to(talk.connector, answer_to(talk.acceptor, hello)));
    EXPECT_NE(talk.acceptor.state(), Handshake::State::done) << "byte " << at;
  }
}

TEST(Handshake, ARecordedConversationIsNoProof) {
  Conversation first{{member(2), kKey}, AcceptorHandshake(member(5))};
  const Bytes response =
      answer_to(first.connector, answer_to(first.acceptor, first.connector.hello()));
  AcceptorHandshake again(member(5));
  answer_to(again, first.connector.hello());
  answer_to(again, response);
  EXPECT_EQ(again.state(), Handshake::State::refused);
}

TEST(Handshake, StreamsThatCannotBeAreRefused) {
  for (const StreamKey& key :
       {StreamKey{5, 5, {}}, StreamKey{6, 5, {}}, StreamKey{-1, 5, {}}, StreamKey{2, 4, {}}}) {
    Conversation talk{{member(2), key}, AcceptorHandshake(member(5))};
    talk.run();
    EXPECT_EQ(talk.acceptor.state(), Handshake::State::refused);
  }
  Membership other = member(2);
  other.communicator = 4;
  Conversation talk{{other, kKey}, AcceptorHandshake(member(5))};
  talk.run();
  EXPECT_EQ(talk.acceptor.state(), Handshake::State::refused);
}

TEST(Handshake, GarbageIsRefusedAtItsFirstByte) {
  AcceptorHandshake acceptor(member(5));
  const std::byte letter{'G'};
  static_cast<void>(acceptor.take({&letter, 1}));
  EXPECT_EQ(acceptor.state(), Handshake::State::refused);
}

// Tests a listener that several threads of a rank share, one call at a time.

Membership member_for(int rank) { return {.rank = rank, .size = 8}; }

class SharedListener : public testing::Test {
 protected:
  SharedListener() : name_(random_secret()) {
    std::vector<FileDescriptor> sockets;
    sockets.push_back(shm::listen_on(name_));
    listener_ = std::make_shared<Listener>(
        std::move(sockets), member_for(5), ConnectionLimits{},
        SocketFamily{"test", [](int) { return std::string("somebody"); }, nullptr});
  }

  [[nodiscard]] Dialer dial(const StreamKey& key) const {
    return {
        {{shm::abstract_address(name_), "here"}}, member_for(key.from), key, ConnectionLimits{}};
  }
  // Returns whether a thread that sleeps until the connection comes would be woken now.
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
