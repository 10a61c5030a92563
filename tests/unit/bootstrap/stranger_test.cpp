// SPDX-License-Identifier: Apache-2.0
// Strangers on the port of an id server: whatever they send, the job goes on.
#include "base/config.h"
#include "base/secret.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/messages.h"
#include "bootstrap/rendezvous_client.h"
#include "bootstrap/server_registry.h"
#include "connections.h"
#include "scoped_environment.h"

#include <random>
#include <thread>

namespace hccl::bootstrap::test {
namespace {

FileDescriptor connect_to_server(const UniqueId& id) { return connect_to(id.addresses.at(0)); }

class Stranger : public testing::Test {
 public:
  ~Stranger() override { retire_unique_id(id_); }

 protected:
  Stranger() {
    environment_.set("HCCL_SOCKET_IFNAME", "lo");
    environment_.remove("HCCL_COMM_ID");
    load_config();
    id_ = create_unique_id();
    server_ = decode(id_);
  }

  [[nodiscard]] Hello valid_hello(int rank, int size) const {
    return {random_secret(), rank, size, ProcessIdentity::mine(), random_secret()};
  }
  [[nodiscard]] Bytes bytes_of(const Hello& hello, std::span<const std::byte> key) const {
    return encode_frame(FrameType::early_hello, serialize(hello, key, kNoNonce));
  }
  [[nodiscard]] Bytes key() const { return proof_key(server_); }

  // What the server answers to the hello: the refusal's code, or 0 for a welcome.
  [[nodiscard]] std::optional<Failure> refusal_of(const Bytes& said) const {
    FrameChannel channel(connect_to_server(server_), kLargePayload);
    const FileDescriptor direct(dup(channel.fd()));
    send_all(direct, said);
    const auto frame = read_until(channel, FrameType::refusal);
    return frame ? parse_failure(frame->payload) : std::nullopt;
  }

  void expect_job_goes_on(int size = 3) { expect_all_joined(join_as_threads(id_, size)); }

  [[nodiscard]] const UniqueId& server() const { return server_; }
  [[nodiscard]] const hcclUniqueId& id() const { return id_; }

 private:
  hccl::test::ScopedEnvironment environment_;
  hcclUniqueId id_{};
  UniqueId server_;
};

TEST_F(Stranger, WithGarbageIsCutOff) {
  for (const std::string& said :
       {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), std::string(5000, '\0'),
        std::string(5000, '\xff'), std::string("HCCL but not quite a frame")}) {
    FrameChannel channel(connect_to_server(server()), kLargePayload);
    const FileDescriptor direct(dup(channel.fd()));
    send_text(direct, said);
    EXPECT_FALSE(read_until(channel, FrameType::refusal));
  }
  expect_job_goes_on();
}

TEST_F(Stranger, WhoIsSilentOrStopsHalfwayHoldsNobodyUp) {
  std::vector<FileDescriptor> silent;
  silent.reserve(300);
  for (int i = 0; i < 300; ++i) silent.push_back(connect_to_server(server()));
  const Bytes hello = bytes_of(valid_hello(1, 3), key());
  for (std::size_t i = 0; i < 20; ++i) {
    send_all(silent[silent.size() - 1 - i], std::span(hello).first(3 + i * 6));
  }
  expect_job_goes_on();
}

TEST_F(Stranger, WithoutTheSecretIsRefused) {
  const Bytes other(16, std::byte{7});
  for (const Bytes& wrong : {other, Bytes{}}) {
    const auto refusal = refusal_of(bytes_of(valid_hello(1, 3), wrong));
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, hcclInvalidArgument);
  }
  expect_job_goes_on();
}

TEST_F(Stranger, WithAnImpossibleRankOrSizeIsRefused) {
  for (const auto& [rank, size] : std::vector<std::pair<int, int>>{
           {-1, 3}, {1, 0}, {1, -5}, {0, kMostRanks + 1}, {kMostRanks, 3}, {1 << 30, 1 << 30}}) {
    EXPECT_FALSE(refusal_of(bytes_of(valid_hello(rank, size), key()))) << rank << " of " << size;
  }
  const auto refusal = refusal_of(bytes_of(valid_hello(7, 3), key()));
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->text.find("rank 7 is not below the size 3"), std::string::npos);
  expect_job_goes_on();
}

TEST_F(Stranger, WithMutilatedHellosIsRefused) {
  std::mt19937 random(20260103);
  const Bytes valid = bytes_of(valid_hello(1, 3), key());
  std::vector<FileDescriptor> open;
  for (int i = 0; i < 400; ++i) {
    Bytes bytes = valid;
    for (int change = 0; change < 1 + i % 4; ++change) {
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
    }
    if (i % 3 == 0) bytes.resize(random() % bytes.size());
    open.push_back(connect_to_server(server()));
    send_all(open.back(), bytes);
    if (i % 2 == 0) open.pop_back();
  }
  expect_job_goes_on();
}

TEST_F(Stranger, CannotRepeatARecordedHelloFromElsewhere) {
  // The early hello of the same machine is enough; one more, with the nonce, changes nothing.
  const Hello hello = valid_hello(2, 3);
  FrameChannel channel(connect_to_server(server()), kLargePayload);
  channel.send(FrameType::early_hello, serialize(hello, key(), kNoNonce));
  const auto greeting = read_until(channel, FrameType::greeting);
  ASSERT_TRUE(greeting);
  const auto parsed = parse_greeting(greeting->payload);
  ASSERT_TRUE(parsed);
  channel.send(FrameType::hello, serialize(hello, key(), parsed->nonce));
  const auto welcome = read_until(channel, FrameType::welcome);
  ASSERT_TRUE(welcome);
  EXPECT_TRUE(welcome_proves(welcome->payload, key(), hello.nonce));
  EXPECT_FALSE(welcome_proves(welcome->payload, Bytes(16), hello.nonce));
  // A joined rank that breaks the protocol ends the rendezvous by name.
  channel.send(FrameType::table, {});
  const auto failure = read_until(channel, FrameType::failure);
  ASSERT_TRUE(failure);
  EXPECT_EQ(parse_failure(failure->payload)->text.find("rank 2 (pid "), 0U);
}

// Without a secret a rank of this machine is known by its user, which nobody knows once it has
// gone.
TEST_F(Stranger, WhoHangsUpWithAHelloIsNoRank) {
  Address address = server().addresses.at(0);
  address.port = 0;
  FileDescriptor listener = listen_on(address);
  ASSERT_TRUE(listener.valid());
  UniqueId open = server();
  open.addresses = {local_address(listener.get())};
  const auto trusting = std::make_shared<IdServer>(open, std::move(listener), Bytes{});
  const Bytes hello = bytes_of(valid_hello(1, 3), Bytes{});
  for (int i = 0; i < 30; ++i) send_all(connect_to_server(open), hello);
  trusting->start();  // all of them have gone
  // Its place is still free, and nothing has failed.
  FrameChannel channel(connect_to_server(open), kLargePayload);
  channel.send(FrameType::early_hello, serialize(valid_hello(1, 3), Bytes{}, kNoNonce));
  EXPECT_TRUE(read_until(channel, FrameType::welcome));
  trusting->stop();
}

// A server that talks without end holds nobody up beyond its deadline.
TEST_F(Stranger, AsATalkativeServerIsRefused) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor far(ends[1]);
  const Hello hello = valid_hello(1, 3);
  RendezvousClient client(server(), key(), hello, Deadline::after(std::chrono::seconds(20)));
  const auto say = [&](FrameType type, const Bytes& payload) {
    send_all(far, encode_frame(type, payload));
  };
  say(FrameType::greeting, serialize(Greeting{}));
  std::thread talker([&] {
    const Welcome welcome{ProcessIdentity::mine(), -1};
    say(FrameType::welcome, serialize(welcome, key(), hello.nonce));
    const Bytes frame = encode_frame(FrameType::server_rank, serialize_rank(0));
    while (send(far.get(), frame.data(), frame.size(), MSG_NOSIGNAL) > 0) {
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

TEST_F(Stranger, AfterCompletionIsToldSo) {
  expect_job_goes_on();
  const Ending late = try_join(id(), 3, 1);
  EXPECT_EQ(late.code, hcclInvalidUsage);
  EXPECT_NE(late.text.find("already complete"), std::string::npos) << late.text;
}

TEST_F(Stranger, AfterRetirementNobodyListens) {
  expect_job_goes_on();
  retire_unique_id(id());
  const Ending late = try_join(id(), 3, 1);
  EXPECT_EQ(late.code, hcclSystemError);
  EXPECT_NE(late.text.find("nobody listens at 127.0.0.1:"), std::string::npos) << late.text;
}

// Whatever it says, or does not say, or says drop by drop.
TEST_F(Stranger, HasLittleTimeForItsHello) {
  Address loopback;
  loopback.bytes = {127, 0, 0, 1};
  FileDescriptor listener = listen_on(loopback);
  ASSERT_TRUE(listener.valid());
  UniqueId own = server();
  own.addresses = {local_address(listener.get())};
  const auto quick =
      std::make_shared<IdServer>(own, std::move(listener), key(), std::chrono::milliseconds(100));
  quick->start();
  const Bytes hello = bytes_of(valid_hello(1, 3), key());
  std::vector<FileDescriptor> strangers;
  for (const std::size_t said :
       {std::size_t{0}, std::size_t{1}, std::size_t{12}, hello.size() - 1}) {
    strangers.push_back(connect_to_server(own));
    send_all(strangers.back(), std::span(hello).first(said));
  }
  const FileDescriptor slow = connect_to_server(own);
  for (std::size_t said = 0; said + 1 < hello.size(); ++said) {
    send_all(slow, std::span(hello).subspan(said, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const FileDescriptor& stranger : strangers) EXPECT_TRUE(is_cut_off(stranger));
  EXPECT_TRUE(is_cut_off(slow));
  quick->stop();
}

// A server that is none: the rank finds out and says so.
TEST_F(Stranger, AsTheServerIsNamed) {
  const Address any = server().addresses.at(0);
  Address address = any;
  address.port = 0;
  const FileDescriptor listener = listen_on(address);
  ASSERT_TRUE(listener.valid());
  UniqueId other = server();
  other.addresses = {local_address(listener.get())};
  const auto serve = [&](const std::string& said) {
    pollfd wanted{listener.get(), POLLIN, 0};
    poll(&wanted, 1, 20'000);
    const FileDescriptor socket(accept(listener.get(), nullptr, nullptr));
    send_text(socket, said);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  std::thread http([&] { serve("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  const Ending ending = try_join(encode(other), 2, 1);
  http.join();
  EXPECT_EQ(ending.code, hcclSocketError);
  EXPECT_NE(ending.text.find("is no hccl server"), std::string::npos) << ending.text;
}

}  // namespace
}  // namespace hccl::bootstrap::test
