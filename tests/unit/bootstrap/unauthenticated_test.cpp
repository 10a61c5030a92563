// SPDX-License-Identifier: Apache-2.0
// Connects to a root server's port without authenticating. The job must continue, whatever the
// connections send. Also tests ranks that break the protocol once they have joined, and faulty
// servers.
#include "base/scope_exit.h"
#include "base/secret.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/join.h"
#include "bootstrap/messages.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/rendezvous_client.h"
#include "bootstrap/root_server.h"
#include "bootstrap/server_registry.h"
#include "bootstrap/shared_secret.h"
#include "connections.h"
#include "loopback_test.h"

#include <future>
#include <random>
#include <thread>

namespace hccl::bootstrap::test {
namespace {

FileDescriptor connect_to_server(const UniqueId& id) { return connect_to(id.addresses.at(0)); }

class Unauthenticated : public ServerTest {
 protected:
  // Returns the first bytes that a rank sends.
  [[nodiscard]] Bytes client_hello() const {
    return crypto::TlsSession(crypto::TlsRole::client, key().session_key()).take_output();
  }
  [[nodiscard]] JoinKey key() const { return JoinKey(server()); }

  // Returns a copy that differs in one to four bytes. One in three copies is also cut short.
  static Bytes damaged(const Bytes& valid, int number, std::mt19937& random) {
    Bytes bytes = valid;
    while (bytes == valid) {
      for (int change = 0; change < 1 + number % 4; ++change) {
        bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
      }
    }
    if (number % 3 == 0) bytes.resize(random() % bytes.size());
    return bytes;
  }

  // Sends a rank's hello. Returns the first frame of type `type` in the server's answer, or nothing
  // if the server closes the connection first.
  [[nodiscard]] std::optional<Frame> answer_to(const Hello& hello, const JoinKey& key,
                                               FrameType type) const {
    FarEnd channel(connect_to_server(server()), key);
    channel->send(FrameType::hello, serialize(hello));
    return channel.read_until(type);
  }

  static void expect_refusal(FarEnd& channel, Refusal::Reason reason) {
    const auto refusal = channel.read_until(FrameType::refusal);
    ASSERT_TRUE(refusal);
    EXPECT_EQ(parse<Refusal>(refusal->payload), Refusal{reason});
  }
  void expect_job_continues(int size = 3) { expect_all_joined(join_as_threads(id(), size)); }
};

TEST_F(Unauthenticated, GarbageIsCutOff) {
  for (const std::string& sent :
       {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), std::string(5000, '\0'),
        std::string(5000, '\xff'), std::string("HCCL but not quite a frame")}) {
    FarEnd channel(connect_to_server(server()));
    const FileDescriptor direct(dup(channel->fd()));
    send_text(direct, sent);
    EXPECT_FALSE(channel.read_until(FrameType::refusal));
  }
  expect_job_continues();
}

TEST_F(Unauthenticated, SilentOrHalfOpenPeerDelaysNobody) {
  std::vector<FileDescriptor> silent;
  silent.reserve(300);
  for (int i = 0; i < 300; ++i) silent.push_back(connect_to_server(server()));
  const Bytes hello = client_hello();
  for (std::size_t i = 0; i < 20; ++i) {
    send_all(silent[silent.size() - 1 - i], std::span(hello).first(3 + i * 6));
  }
  expect_job_continues();
}

TEST_F(Unauthenticated, CrowdFromOneHostDisplacesNoRankOfAnother) {
  const FileDescriptor socket = connect_to_server(server());
  TlsEnd rank(socket.get(), crypto::TlsRole::client, key().session_key());
  ASSERT_TRUE(rank.shake_hands());
  Address other_host = server().addresses.at(0);
  other_host.bytes[3] = 2;  // 127.0.0.2
  other_host.port = 0;
  std::vector<FileDescriptor> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(connect_to(server().addresses.at(0), other_host));
    send_all(crowd.back(), client_hello());
    std::byte answer{};
    ASSERT_EQ(recv(crowd.back().get(), &answer, 1, 0), 1);
  }
  send_all(socket, rank.encrypted(FrameType::hello, serialize(hello_of(1, 3))));
  std::byte welcome{};
  EXPECT_EQ(recv(socket.get(), &welcome, 1, 0), 1);
}

TEST_F(Unauthenticated, WrongSecretIsRefused) {
  for (const JoinKey& wrong :
       {JoinKey{SecretBytes(32, std::byte{7}), true}, JoinKey{SecretBytes(32), false}}) {
    FarEnd channel(connect_to_server(server()), wrong);
    channel->send(FrameType::hello, serialize(hello_of(1, 3)));
    EXPECT_FALSE(channel.read_until(FrameType::welcome));
    EXPECT_TRUE(channel->lacks_key()) << channel->why();
  }
  expect_job_continues();
}

TEST_F(Unauthenticated, OtherVersionIsRefused) {
  FarEnd channel(connect_to_server(server()), key());
  channel->send(FrameType::hello, serialize(Hello{.version = kProtocolVersion + 1}));
  expect_refusal(channel, Refusal::other_version);
  expect_job_continues();
}

TEST_F(Unauthenticated, ImpossibleRankOrSizeIsRefused) {
  for (const auto& [rank, size] : std::vector<std::pair<int, int>>{
           {-1, 3}, {1, 0}, {1, -5}, {0, kMostRanks + 1}, {kMostRanks, 3}, {1 << 30, 1 << 30}}) {
    EXPECT_FALSE(answer_to(hello_of(rank, size), key(), FrameType::failure))
        << rank << " of " << size;
  }
  const auto refusal = answer_to(hello_of(7, 3), key(), FrameType::failure);
  ASSERT_TRUE(refusal);
  const auto why = parse<Failure>(refusal->payload);
  ASSERT_TRUE(why);
  EXPECT_NE(why->text.find("rank 7 is not below the size 3"), std::string::npos);
  expect_job_continues();
}

TEST_F(Unauthenticated, CorruptBytesAreRefused) {
  std::mt19937 random(20260103);
  const Bytes valid = client_hello();
  std::vector<FileDescriptor> open;
  for (int i = 0; i < 400; ++i) {
    open.push_back(connect_to_server(server()));
    send_all(open.back(), damaged(valid, i, random));
    if (i % 2 == 0) open.pop_back();
  }
  expect_job_continues();
}

// The server would accept the hello if it were not damaged.
TEST_F(Unauthenticated, CorruptHelloIsRefused) {
  std::mt19937 random(20260104);
  std::vector<FileDescriptor> open;
  for (int i = 0; i < 400; ++i) {
    open.push_back(connect_to_server(server()));
    TlsEnd rank(open.back().get(), crypto::TlsRole::client, key().session_key());
    ASSERT_TRUE(rank.shake_hands());
    const Bytes valid = rank.encrypted(FrameType::hello, serialize(hello_of(1, 3)));
    send_all(open.back(), damaged(valid, i, random));
    if (i % 2 == 0) open.pop_back();
  }
  expect_job_continues();
}

// The recorded bytes of a rank must be useless, in the same run and in a later run with the same
// key.
TEST_F(Unauthenticated, ReplayedBytesAreRefused) {
  const FileDescriptor socket = connect_to_server(server());
  TlsEnd rank(socket.get(), crypto::TlsRole::client, key().session_key());
  ASSERT_TRUE(rank.shake_hands());
  send_all(socket, rank.encrypted(FrameType::hello, serialize(hello_of(2, 3))));
  std::byte welcome{};
  EXPECT_EQ(recv(socket.get(), &welcome, 1, 0), 1);
  Address loopback{.bytes = {127, 0, 0, 1}};
  FileDescriptor listener = listen_on(loopback);
  UniqueId next = server();
  next.addresses = {local_address(listener.get())};
  const auto next_run = std::make_shared<RootServer>(next, std::move(listener), key());
  next_run->start();
  for (const UniqueId& run : {server(), next}) {
    const FileDescriptor replay = connect_to_server(run);
    send_all(replay, rank.sent());
    EXPECT_TRUE(is_cut_off(replay));
  }
  next_run->stop();
}

// If a rank breaks the protocol, or its frames are changed in transit, the rendezvous must fail
// with an error that names the rank.
TEST_F(Unauthenticated, ForgedOrUnexpectedFrameFailsRendezvous) {
  for (const bool forged : {false, true}) {
    const UniqueId run = decode(create_unique_id());
    FarEnd channel(connect_to_server(run), JoinKey(run));
    channel->send(FrameType::hello, serialize(hello_of(2, 3)));
    ASSERT_TRUE(channel.read_until(FrameType::welcome));
    FarEnd other(connect_to_server(run), JoinKey(run));
    other->send(FrameType::hello, serialize(hello_of(1, 3)));
    ASSERT_TRUE(other.read_until(FrameType::welcome));
    if (forged) {
      const FileDescriptor direct(dup(channel->fd()));
      send_all(direct, encode_frame(FrameType::ready, Bytes(60)));
    } else {
      channel->send(FrameType::table, {});
    }
    const auto frame = other.read_until(FrameType::failure);
    ASSERT_TRUE(frame);
    const auto failure = parse<Failure>(frame->payload);
    EXPECT_EQ(failure->text.find("rank 2 (pid "), 0U);
    const bool named = failure->text.find(kForgedRecord) != std::string::npos;
    EXPECT_EQ(named, forged) << failure->text;
    retire_unique_id(encode(run));
  }
}

// At the port of HCCL_COMM_ID, the server checks which user owns the socket of a local rank. Once
// the rank has closed the socket, its owner is unknown, so the server must ignore the rank's hello.
TEST_F(Unauthenticated, HelloOfClosedConnectionIsIgnored) {
  Address address = server().addresses.at(0);
  address.port = 0;
  FileDescriptor listener = listen_on(address);
  ASSERT_TRUE(listener.valid());
  UniqueId open = server();
  open.kind = UniqueId::Kind::fixed_address;
  open.addresses = {local_address(listener.get())};
  const JoinKey public_key{SecretBytes(32), false};
  const auto trusting = std::make_shared<RootServer>(open, std::move(listener), public_key);
  trusting->start();
  for (int i = 0; i < 3; ++i) {
    FileDescriptor socket = connect_to_server(open);
    TlsEnd rank(socket.get(), crypto::TlsRole::client, public_key.session_key());
    ASSERT_TRUE(rank.shake_hands());
    // Blocks the control thread, so that the server reads the hello only after the rank has hung
    // up.
    std::promise<void> begun;
    std::promise<void> hung_up;
    ControlThread::instance().post([&begun, has_hung_up = hung_up.get_future().share()] {
      begun.set_value();
      has_hung_up.wait();
    });
    begun.get_future().wait();
    send_all(socket, rank.encrypted(FrameType::hello, serialize(hello_of(1, 3))));
    socket.reset();
    hung_up.set_value();
  }
  // The rank must still be able to join.
  FarEnd channel(connect_to_server(open), public_key);
  channel->send(FrameType::hello, serialize(hello_of(1, 3)));
  EXPECT_TRUE(channel.read_until(FrameType::welcome)) << channel->why();
  trusting->stop();
}

// A server that sends endlessly must not delay a rank beyond the rank's deadline.
TEST_F(Unauthenticated, FloodingServerIsRefused) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor far(ends[1]);
  const Hello hello = hello_of(1, 3);
  RendezvousClient client(server(), key(), hello, Deadline::after(std::chrono::seconds(20)));
  std::thread talker([&] {
    TlsEnd server(far.get(), crypto::TlsRole::server, key().session_key());
    if (!server.shake_hands()) return;
    const Welcome welcome{ProcessIdentity::mine(), -1};
    send_all(far, server.encrypted(FrameType::welcome, serialize(welcome)));
    while (true) {
      const Bytes frame = server.encrypted(FrameType::server_rank, serialize(RankMessage{0}));
      if (send(far.get(), frame.data(), frame.size(), MSG_NOSIGNAL) <= 0) break;
    }
  });
  const auto join = [&] {
    EXPECT_TRUE(client.join_over(FileDescriptor(ends[0])));
    static_cast<void>(client.wait_for_table());
  };
  EXPECT_THROW(join(), Error);
  shutdown(far.get(), SHUT_RDWR);
  talker.join();
}

// An error message from an unauthenticated server must be quoted on one line.
TEST_F(Unauthenticated, ServerWithoutKeyIsQuoted) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor far(ends[1]);
  const JoinKey public_key{SecretBytes(32), false};
  RendezvousClient client(server(), public_key, hello_of(1, 3), Deadline::after(kPatience));
  const Failure lie{hcclSystemError, "all is well\n\x1b[2J\xc2\x9b" + std::string(1000, '#')};
  std::thread liar([&] {
    TlsEnd server(far.get(), crypto::TlsRole::server, public_key.session_key());
    if (server.shake_hands()) send_all(far, server.encrypted(FrameType::failure, serialize(lie)));
  });
  const ScopeExit join_liar([&] { liar.join(); });
  try {
    static_cast<void>(client.join_over(FileDescriptor(ends[0])));
    FAIL() << "the rank joined";
  } catch (const Error& error) {
    const std::string what = error.what();
    const std::size_t at = what.find("which is not authenticated, reports \"all is well??[2J??###");
    EXPECT_NE(at, std::string::npos) << what;
    EXPECT_LT(what.size(), 400U);
  }
}

TEST_F(Unauthenticated, RankAfterCompletionIsRefused) {
  expect_job_continues();
  const Ending late = try_join(id(), 3, 1);
  EXPECT_EQ(late.code, hcclInvalidUsage);
  EXPECT_NE(late.text.find("already complete"), std::string::npos) << late.text;
}

TEST_F(Unauthenticated, RankAfterRetirementFindsNoServer) {
  expect_job_continues();
  retire_unique_id(id());
  const Ending late = try_join(id(), 3, 1);
  EXPECT_EQ(late.code, hcclSystemError);
  EXPECT_NE(late.text.find("no process listens at 127.0.0.1:"), std::string::npos) << late.text;
}

// The server must close a connection in time if the hello is missing or incomplete, or arrives one
// byte at a time.
TEST_F(Unauthenticated, SlowHelloIsCutOff) {
  Address loopback;
  loopback.bytes = {127, 0, 0, 1};
  FileDescriptor listener = listen_on(loopback);
  ASSERT_TRUE(listener.valid());
  UniqueId own = server();
  own.addresses = {local_address(listener.get())};
  const auto quick =
      std::make_shared<RootServer>(own, std::move(listener), key(), std::chrono::milliseconds(100));
  quick->start();
  const Bytes hello = client_hello();
  std::vector<FileDescriptor> others;
  for (const std::size_t sent :
       {std::size_t{0}, std::size_t{1}, std::size_t{12}, hello.size() - 1}) {
    others.push_back(connect_to_server(own));
    send_all(others.back(), std::span(hello).first(sent));
  }
  const FileDescriptor slow = connect_to_server(own);
  for (std::size_t sent = 0; sent + 1 < hello.size(); ++sent) {
    send_all(slow, std::span(hello).subspan(sent, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const FileDescriptor& other : others) EXPECT_TRUE(is_cut_off(other));
  EXPECT_TRUE(is_cut_off(slow));
  quick->stop();
}

// A rank must report that the program at the server's address is not an hccl server.
TEST_F(Unauthenticated, ForeignServerIsReported) {
  const Address any = server().addresses.at(0);
  Address address = any;
  address.port = 0;
  const FileDescriptor listener = listen_on(address);
  ASSERT_TRUE(listener.valid());
  UniqueId other = server();
  other.addresses = {local_address(listener.get())};
  const auto serve = [&](const std::string& sent) {
    pollfd wanted{listener.get(), POLLIN, 0};
    poll(&wanted, 1, 20'000);
    const FileDescriptor socket(accept(listener.get(), nullptr, nullptr));
    send_text(socket, sent);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  std::thread http([&] { serve("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  const Ending ending = try_join(encode(other), 2, 1);
  http.join();
  EXPECT_EQ(ending.code, hcclSocketError);
  EXPECT_NE(ending.text.find("is not an hccl server"), std::string::npos) << ending.text;
}

}  // namespace
}  // namespace hccl::bootstrap::test
