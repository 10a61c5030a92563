// SPDX-License-Identifier: Apache-2.0
// Tests connections between a rank and a peer that does not know the secret, sends no valid
// handshake or claims a stream that is already connected. One side must refuse each connection, and
// the ranks' own streams must still work. Where the acceptor refuses, most tests check its log.
#include "base/address.h"
#include "crypto/keys.h"
#include "harness.h"
#include "hex.h"
#include "openssl_client.h"
#include "shm/unix_socket.h"
#include "tcp/addresses.h"
#include "transport/handshake.h"
#include "verbs/verbs_address.h"

#include <sys/socket.h>
#include <unistd.h>

namespace hccl::test {
namespace {

class UnknownPeers : public EveryWay {
 protected:
  // On rank 0, calls `mischief`, which connects to rank 1 as an unknown peer. If `stream_first`,
  // rank 0 opens its streams to rank 1 before that call, otherwise after it. Returns the stderr of
  // rank 1, which accepts the connections.
  static std::string log_of_acceptor(const std::function<void(Member&)>& mischief,
                                     bool stream_first = false) {
    const RankOptions options{.capture_stderr = true};
    const auto outcomes = run_ranks(
        2,
        [&](World& world) {
          transport::ConnectionLimits limits{.handshake = std::chrono::milliseconds(500),
                                             .pending = 8};
          Member member(world, GetParam(), limits);
          if (world.rank == 0 && !stream_first) mischief(member);
          const auto endpoint = member.open(1 - world.rank);
          const auto own = static_cast<std::uint64_t>(world.rank);
          Mover().run({{endpoint.get(), own, 1000}}, {{endpoint.get(), 1 - own, 1000}});
          // While rank 1 waits for the last bytes, it accepts further connections.
          const auto last = member.open(1 - world.rank, {0, 1});
          if (world.rank == 0 && stream_first) mischief(member);
          Mover().run({{endpoint.get(), own, 1000, 0, 0}, {last.get(), 9 + own, 10}},
                      {{endpoint.get(), 1 - own, 1000}, {last.get(), 10 - own, 10}});
        },
        options);
    EXPECT_EQ(failures(outcomes), "");
    return outcomes[1].stderr_text;
  }
};

INSTANTIATE_TEST_SUITE_P(All, UnknownPeers, testing::ValuesIn(all_ways()), name_of);

std::shared_ptr<const SecretBytes> other_secret() {
  return std::make_shared<const SecretBytes>(16, std::byte{0x43});
}

FileDescriptor raw_connection(const Member& member) {
  const Bytes& address = member.address_of(1);
  SocketAddress where;
  if (const auto tcp = tcp::parse_tcp_addresses(address)) {
    where = to_socket_address(tcp->addresses.front().address);
  } else if (const auto rdma = verbs::parse_verbs_address(address)) {
    where = to_socket_address(verbs::tcp_address(*rdma));
  } else {
    shm::SocketName name{};
    std::copy(address.end() - static_cast<std::ptrdiff_t>(name.size()), address.end(),
              name.begin());
    where = shm::abstract_address(name);
  }
  FileDescriptor socket(::socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(connect(socket.get(), where.get(), where.length) == 0, "the unknown peer connects");
  return socket;
}

void send_raw(const FileDescriptor& socket, std::span<const std::byte> bytes) {
  require(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(bytes.size()),
          "the unknown peer sends");
}

TEST_P(UnknownPeers, GarbageIsRefusedNamingItsSource) {
  const std::string log = log_of_acceptor([](Member& member) {
    const FileDescriptor socket = raw_connection(member);
    const std::string request = "GET / HTTP/1.1\r\n\r\n";
    send_raw(socket, std::as_bytes(std::span(request)));
    std::byte byte{};
    require(recv(socket.get(), &byte, 1, 0) <= 0, "it is closed immediately");
  });
  std::string source = GetParam().v6 ? "[::1]:" : "127.0.0.1:";
  if (GetParam().name == std::string("shm")) source = "process ";
  if (GetParam().name == std::string("verbs")) source = "";  // the address depends on the machine
  EXPECT_TRUE(contains(log, join("rejected a connection from ", source))) << log;
  EXPECT_TRUE(contains(log, "did not send this version's handshake")) << log;
}

TEST_P(UnknownPeers, ResetConnectionIsLoggedWithItsSource) {
  const std::string log = log_of_acceptor([](Member& member) {
    const linger at_once{1, 0};
    const FileDescriptor socket = raw_connection(member);
    setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  });
  EXPECT_TRUE(contains(log, "rejected a connection from ")) << log;
  EXPECT_FALSE(contains(log, "0.0.0.0")) << log;
}

TEST_P(UnknownPeers, SilentConnectionsDelayNobody) {
  std::vector<FileDescriptor> sockets;  // open until the end of the test
  const std::string log = log_of_acceptor([&](Member& member) {
    for (int i = 0; i < 100; ++i) {
      sockets.push_back(raw_connection(member));
      const transport::ConnectorHandshake own({.secret = other_secret()}, {0, 1, {}});
      // The listener may already have closed this connection in favour of newer ones.
      if (i % 2 == 0)
        static_cast<void>(!send(sockets.back().get(), own.hello().data(), 9, MSG_NOSIGNAL));
    }
  });
  EXPECT_TRUE(contains(log, "had not authenticated")) << log;
}

TEST_P(UnknownPeers, ASilentConnectionTimesOut) {
  log_of_acceptor([](Member& member) {
    const FileDescriptor socket = raw_connection(member);
    // During this call, rank 1 waits for its stream and therefore accepts connections.
    std::byte byte{};
    require(recv(socket.get(), &byte, 1, 0) <= 0, "the silent connection is closed");
  });
}

TEST_P(UnknownPeers, AConnectorWithoutTheSecretIsRefused) {
  const std::string log = log_of_acceptor([](Member& member) {
    // This connector has everything except the secret.
    transport::Membership other = settings_for(0, 2, GetParam()).membership;
    other.secret = other_secret();
    const transport::ConnectorHandshake unknown_peer(other, {0, 1, {}});
    const FileDescriptor socket = raw_connection(member);
    send_raw(socket, unknown_peer.hello());
    std::array<std::byte, 64> alert{};
    require(recv(socket.get(), alert.data(), alert.size(), 0) < 10, "it gets at most an alert");
    require(recv(socket.get(), alert.data(), alert.size(), 0) <= 0, "it is refused");
  });
  EXPECT_TRUE(contains(log, "it does not know the communicator's secret")) << log;
}

TEST_P(UnknownPeers, AnAcceptorWithoutTheSecretIsRefused) {
  log_of_acceptor([](Member& member) {
    transport::Settings settings = settings_for(0, 2, GetParam());
    settings.membership.secret = other_secret();
    const auto other = make_transport(GetParam(), settings);
    const auto endpoint = other->open(1, {}, member.address_of(1));
    const std::string loss = loss_of(*endpoint);
    require(contains(loss, "does not know the communicator's secret"), loss);
  });
}

TEST_P(UnknownPeers, ASecondClaimIsRefused) {
  const std::string log = log_of_acceptor(
      [](Member& member) {
        const auto other = make_transport(GetParam(), settings_for(0, 2, GetParam()));
        const auto endpoint = other->open(1, {}, member.address_of(1));
        const std::string loss = loss_of(*endpoint);
        require(contains(loss, "already has a connection for this stream"), loss);
      },
      true);
  EXPECT_TRUE(contains(log, "claimed to be rank 0 for a stream that")) << log;
}

std::vector<Way> ways_over_tcp() {
  std::vector<Way> ways = all_ways();
  std::erase_if(ways, [](const Way& way) { return way.transport != std::string("tcp"); });
  return ways;
}

// Probes the port of the data connections. Their handshake is TLS even if the data is not
// encrypted.
class OpensslAtDataPort : public UnknownPeers {};

INSTANTIATE_TEST_SUITE_P(Tcp, OpensslAtDataPort, testing::ValuesIn(ways_over_tcp()), name_of);

TEST_P(OpensslAtDataPort, GetsInOnlyWithTheKey) {
  if (!OpensslClient::is_installed()) GTEST_SKIP() << "needs openssl: apt install openssl";
  log_of_acceptor([](Member& member) {
    const auto tcp = tcp::parse_tcp_addresses(member.address_of(1));
    const transport::Settings settings = settings_for(0, 2, GetParam());
    const OpensslClient client(
        tcp->addresses.front().address.to_text(),
        hex(crypto::derive_key(*settings.membership.secret, "hccl-stream-handshake")));
    require_equal(client.problem_with_key(), std::string(), "with the key");
    require_equal(client.problem_otherwise(), std::string(), "without the key");
  });
}

}  // namespace
}  // namespace hccl::test
