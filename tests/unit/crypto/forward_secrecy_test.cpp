// SPDX-License-Identifier: Apache-2.0
// An attacker who has recorded a session learns its pre-shared key later, and tries to decrypt the
// recording. Checks the decryption with the traffic secret that OpenSSL logs, and the key schedule
// with RFC 8448.
#include "crypto/openssl_call.h"
#include "crypto/tls_context.h"
#include "crypto/tls_session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>

namespace hccl::crypto {
namespace {

using Hash = std::array<unsigned char, SHA256_DIGEST_LENGTH>;
using Octets = std::vector<unsigned char>;

constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kTagSize = 16;

Octets octets(std::span<const std::byte> bytes) {
  Octets result;
  for (const std::byte byte : bytes) result.push_back(std::to_integer<unsigned char>(byte));
  return result;
}

Octets from_hex(std::string_view digits) {
  Octets result;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    result.push_back(
        static_cast<unsigned char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  return result;
}

Hash hmac(std::span<const unsigned char> key, std::span<const unsigned char> message) {
  Hash result{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), message.data(), message.size(),
       result.data(), nullptr);
  return result;
}

Hash sha256_of(std::span<const unsigned char> message) {
  Hash result{};
  SHA256(message.data(), message.size(), result.data());
  return result;
}

// HKDF-Expand-Label of RFC 8446, section 7.1, for at most 32 bytes.
Octets expand_label(std::span<const unsigned char> secret, std::string_view label,
                    std::span<const unsigned char> context, std::size_t size) {
  const std::string name = "tls13 " + std::string(label);
  Octets info{0, static_cast<unsigned char>(size), static_cast<unsigned char>(name.size())};
  info.insert(info.end(), name.begin(), name.end());
  info.push_back(static_cast<unsigned char>(context.size()));
  info.insert(info.end(), context.begin(), context.end());
  info.push_back(1);
  const Hash expanded = hmac(secret, info);
  return {expanded.begin(), expanded.begin() + static_cast<std::ptrdiff_t>(size)};
}

// Returns the secret from which the keys of the handshake are derived (RFC 8446, section 7.1).
// `exchanged`: the result of the ephemeral key exchange.
Hash handshake_secret(std::span<const unsigned char> key,
                      std::span<const unsigned char> exchanged) {
  const Hash early = hmac(Hash{}, key);
  return hmac(expand_label(early, "derived", sha256_of({}), sizeof(Hash)), exchanged);
}

// Returns whether the record authenticates under the keys that belong to the traffic secret.
bool decrypts(std::span<const unsigned char> record, std::span<const unsigned char> secret) {
  const Octets key = expand_label(secret, "key", {}, 16);
  const Octets nonce = expand_label(secret, "iv", {}, 12);  // of the first record
  const auto body = record.subspan(kRecordHeader, record.size() - kRecordHeader - kTagSize);
  Octets tag(record.end() - kTagSize, record.end());
  Octets plaintext(body.size());
  int written = 0;
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
      EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  EVP_DecryptInit_ex(context.get(), EVP_aes_128_gcm(), nullptr, key.data(), nonce.data());
  EVP_DecryptUpdate(context.get(), nullptr, &written, record.data(), kRecordHeader);
  EVP_DecryptUpdate(context.get(), plaintext.data(), &written, body.data(),
                    static_cast<int>(body.size()));
  EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagSize, tag.data());
  return EVP_DecryptFinal_ex(context.get(), plaintext.data(), &written) == 1;
}

std::vector<Octets> records_in(const Octets& stream) {
  std::vector<Octets> records;
  for (auto at = stream.begin(); at != stream.end(); at += std::ssize(records.back())) {
    const auto size =
        static_cast<std::ptrdiff_t>(kRecordHeader) + std::ptrdiff_t{at[3]} * 256 + at[4];
    records.emplace_back(at, at + size);
  }
  return records;
}

std::map<std::string, Octets>& logged_secrets() {
  static std::map<std::string, Octets> secrets;
  return secrets;
}

void log_secret(const SSL* /*session*/, const char* line) {
  std::istringstream words(line);
  std::string name;
  std::string random;
  std::string secret;
  words >> name >> random >> secret;
  logged_secrets()[name] = from_hex(secret);
}

// The values of RFC 8448, section 3, whose session has no pre-shared key.
TEST(ForwardSecrecy, KeyScheduleOfTheAttackIsRight) {
  const Hash secret = handshake_secret(
      Hash{}, from_hex("8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d"));
  EXPECT_EQ(Octets(secret.begin(), secret.end()),
            from_hex("1dc826e93606aa6fdc0aadc12f741b01046aa6b99f691ed221a9f0ca043fbeac"));
  const Octets transcript_hash =
      from_hex("860c06edc07858ee8e78f0e7428c58edd6b43f2ca3e6e95f02ed063cf0e1cad8");
  EXPECT_EQ(expand_label(secret, "s hs traffic", transcript_hash, sizeof(Hash)),
            from_hex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38"));
}

TEST(ForwardSecrecy, RecordingStaysSecretIfTheKeyBecomesKnown) {
  const Bytes key(32, std::byte{7});
  {
    const OpensslCall call;
    SSL_CTX_set_keylog_callback(tls_context(), log_secret);
  }
  TlsSession client(TlsRole::client, key);
  TlsSession server(TlsRole::server, key);
  Bytes at_client;
  Bytes at_server;
  const Bytes hello = client.take_output();
  server.receive(hello, at_server);
  const Bytes answer = server.take_output();
  client.receive(answer, at_client);
  server.receive(client.take_output(), at_server);
  ASSERT_EQ(server.state(), TlsState::established) << server.why();
  {
    const OpensslCall call;
    SSL_CTX_set_keylog_callback(tls_context(), nullptr);
  }

  // The recording: the client's first message, and the server's answer.
  const std::vector<Octets> records = records_in(octets(answer));
  const auto encrypted = std::ranges::find_if(
      records, [](const Octets& record) { return record[0] == SSL3_RT_APPLICATION_DATA; });
  ASSERT_NE(encrypted, records.end());
  Octets transcript = octets(std::span(hello).subspan(kRecordHeader));
  transcript.insert(transcript.end(), records[0].begin() + kRecordHeader, records[0].end());

  const Octets& logged = logged_secrets()["SERVER_HANDSHAKE_TRAFFIC_SECRET"];
  ASSERT_EQ(logged.size(), sizeof(Hash));
  EXPECT_TRUE(decrypts(*encrypted, logged)) << "the method is wrong";
  const Octets guessed = expand_label(handshake_secret(octets(key), Hash{}), "s hs traffic",
                                      sha256_of(transcript), sizeof(Hash));
  EXPECT_FALSE(decrypts(*encrypted, guessed));
}

}  // namespace
}  // namespace hccl::crypto
