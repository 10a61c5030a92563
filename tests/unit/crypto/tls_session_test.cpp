// SPDX-License-Identifier: Apache-2.0
// Tests TLS sessions against each other, without sockets.
#include "crypto/tls_session.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <openssl/err.h>

namespace hccl::crypto {
namespace {

const Bytes kKey(32, std::byte{7});

Bytes text_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

bool contains(std::span<const std::byte> bytes, std::span<const std::byte> part) {
  return std::search(bytes.begin(), bytes.end(), part.begin(), part.end()) != bytes.end();
}

struct Pair {
  explicit Pair(const Bytes& server_key = kKey) : server(TlsRole::server, server_key) {}

  TlsSession client{TlsRole::client, kKey};
  TlsSession server;
  Bytes at_client;
  Bytes at_server;
  Bytes seen;  // all encrypted bytes

  // Passes bytes between the sessions until neither has more to say.
  void run() {
    while (true) {
      const Bytes there = client.take_output();
      server.receive(there, at_server);
      const Bytes back = server.take_output();
      client.receive(back, at_client);
      seen.insert(seen.end(), there.begin(), there.end());
      seen.insert(seen.end(), back.begin(), back.end());
      if (there.empty() && back.empty()) return;
    }
  }
};

TEST(TlsSession, CarriesBytesInBothDirections) {
  Pair pair;
  const Bytes early = text_bytes("sent before the handshake");
  pair.client.send(early);
  pair.run();
  EXPECT_EQ(pair.client.state(), TlsState::established);
  EXPECT_EQ(pair.server.state(), TlsState::established);
  EXPECT_EQ(pair.at_server, early);
  Bytes large(1'000'000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7 % 251);
  pair.server.send(large);
  pair.run();
  EXPECT_EQ(pair.at_client, large);
}

TEST(TlsSession, HidesBytesAndKey) {
  Pair pair;
  const Bytes secret = text_bytes("sixteen bytes ok");
  pair.client.send(secret);
  pair.run();
  EXPECT_FALSE(contains(pair.seen, secret));
  EXPECT_FALSE(contains(pair.seen, std::span(kKey).first(16)));
}

TEST(TlsSession, UsesNewKeysEachTime) {
  Pair one;
  Pair other;
  one.run();
  other.run();
  const SecretBytes key = one.client.export_key("label", 32);
  EXPECT_EQ(key, one.server.export_key("label", 32));
  EXPECT_NE(key, one.client.export_key("other", 32));
  EXPECT_NE(key, other.client.export_key("label", 32));
}

TEST(TlsSession, NeedsTheSameKey) {
  Pair pair(Bytes(32, std::byte{8}));
  pair.client.send(text_bytes("never delivered"));
  pair.run();
  EXPECT_EQ(pair.server.state(), TlsState::other_key) << pair.server.why();
  EXPECT_EQ(pair.client.state(), TlsState::other_key) << pair.client.why();
  EXPECT_TRUE(pair.at_server.empty());
}

TEST(TlsSession, RefusesChangedHandshake) {
  const std::size_t size = TlsSession(TlsRole::client, kKey).take_output().size();
  constexpr std::size_t kLegacyVersion = 2;  // a byte that TLS 1.3 ignores
  for (std::size_t at = 0; at < size; ++at) {
    if (at == kLegacyVersion) continue;
    Pair pair;
    Bytes hello = pair.client.take_output();
    hello[at] ^= std::byte{1};
    pair.server.receive(hello, pair.at_server);
    pair.run();
    EXPECT_NE(pair.server.state(), TlsState::established) << "byte " << at;
  }
}

TEST(TlsSession, RefusesChangedRecords) {
  const auto with = [](auto change) {
    Pair pair;
    pair.run();
    pair.client.send(text_bytes("first"));
    Bytes first = pair.client.take_output();
    pair.client.send(text_bytes("second"));
    const Bytes second = pair.client.take_output();
    change(pair, first, second);
    EXPECT_EQ(pair.server.state(), TlsState::altered) << pair.server.why();
    return std::string(reinterpret_cast<const char*>(pair.at_server.data()), pair.at_server.size());
  };
  EXPECT_EQ(with([](Pair& pair, Bytes& first, const Bytes&) {
              first.back() ^= std::byte{1};
              pair.server.receive(first, pair.at_server);
            }),
            "");
  EXPECT_EQ(with([](Pair& pair, Bytes&, const Bytes& second) {
              pair.server.receive(second, pair.at_server);
            }),
            "")
      << "the first record was dropped";
  EXPECT_EQ(with([](Pair& pair, Bytes& first, const Bytes&) {
              pair.server.receive(first, pair.at_server);
              pair.server.receive(first, pair.at_server);
            }),
            "first")
      << "the first record was repeated";
}

TEST(TlsSession, RefusesOtherProtocols) {
  TlsSession server(TlsRole::server, kKey);
  Bytes plaintext;
  server.receive(text_bytes("GET / HTTP/1.1\r\n\r\n"), plaintext);
  EXPECT_EQ(server.state(), TlsState::not_tls);
}

// OpenSSL would mistake an error that the program has left behind for an error of the session.
TEST(TlsSession, IgnoresErrorsOfTheProgramAndLeavesNone) {
  Pair pair;
  ERR_raise(ERR_LIB_USER, 42);
  pair.run();
  ERR_raise(ERR_LIB_USER, 42);
  pair.client.receive({}, pair.at_client);
  EXPECT_EQ(pair.client.state(), TlsState::established) << pair.client.why();
  pair.server.receive(text_bytes("not a record"), pair.at_server);
  EXPECT_EQ(pair.server.state(), TlsState::altered);
  EXPECT_EQ(ERR_get_error(), 0U);
}

TEST(TlsSession, RecognisesFirstBytesOfRecords) {
  const Bytes hello = TlsSession(TlsRole::client, kKey).take_output();
  EXPECT_TRUE(may_become_tls_record({}));
  EXPECT_TRUE(may_become_tls_record(std::span(hello).first(1)));
  EXPECT_TRUE(may_become_tls_record(hello));
  EXPECT_FALSE(may_become_tls_record(text_bytes("G")));
  EXPECT_FALSE(may_become_tls_record(text_bytes("\x16\x02")));
}

}  // namespace
}  // namespace hccl::crypto
