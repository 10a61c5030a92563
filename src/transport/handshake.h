// SPDX-License-Identifier: Apache-2.0
// The handshake on a new connection before the stream begins: which stream it is, and proof from
// both sides that they know the communicator's secret, which is never sent itself.
//
//   connector -> acceptor   hello: format, nonce, communicator, ranks, channel
//   acceptor -> connector   challenge: nonce, HMAC(secret, "acceptor", hello, nonce)
//   connector -> acceptor   response: HMAC(secret, "connector", hello, nonce)
//   acceptor -> connector   verdict
#pragma once

#include "base/fields.h"
#include "base/secret.h"
#include "transport/transport.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace hccl::transport {

// A stream within a communicator.
struct StreamKey {
  int from = -1;  // the rank that connects: the smaller number
  int to = -1;
  Channel channel;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the operator for a null pointer
  friend auto operator<=>(const StreamKey&, const StreamKey&) = default;
};

// The stream between this rank and another. Throws Error(hcclInternalError) for a rank that is
// none, or itself.
[[nodiscard]] StreamKey key_between(const Membership& own, int peer, Channel channel);

// Each message has a fixed size, and no more is read than the next one lacks: what follows the
// verdict is the stream's.
class Handshake {
 public:
  enum class State : std::uint8_t { talking, done, refused };

  [[nodiscard]] State state() const { return state_; }
  // Why it was refused: a clause about the other side.
  [[nodiscard]] const std::string& why() const { return why_; }
  // How many bytes to read at the most.
  [[nodiscard]] std::size_t wanted() const { return expected_ - heard_.size(); }

 protected:
  explicit Handshake(std::size_t expected) : expected_(expected) {}
  ~Handshake() = default;

  void hear(std::span<const std::byte> bytes);
  [[nodiscard]] bool is_whole() const { return heard_.size() == expected_; }
  [[nodiscard]] std::span<const std::byte> heard() const { return heard_; }
  void expect(std::size_t count);
  void finish() { expect_nothing(State::done); }
  void refuse(const std::string& why);

 private:
  void expect_nothing(State state);

  State state_ = State::talking;
  std::size_t expected_;
  Bytes heard_;
  std::string why_;
};

enum class Verdict : std::uint8_t { accepted = 1, claimed = 2 };

class ConnectorHandshake : public Handshake {
 public:
  ConnectorHandshake(const Membership& own, const StreamKey& key);

  // The first thing to say.
  [[nodiscard]] const Bytes& hello() const { return hello_; }
  // Takes bytes, at most wanted(), and returns what to say.
  [[nodiscard]] Bytes take(std::span<const std::byte> bytes);

 private:
  Secret secret_;
  Bytes hello_;
  bool challenged_ = false;
};

class AcceptorHandshake : public Handshake {
 public:
  explicit AcceptorHandshake(const Membership& own);

  // Takes bytes, at most wanted(), and returns what to say. Done when the connector has proved
  // itself: the verdict on key() is then the caller's.
  [[nodiscard]] Bytes take(std::span<const std::byte> bytes);
  [[nodiscard]] const StreamKey& key() const { return key_; }
  [[nodiscard]] static Bytes say(Verdict verdict);

 private:
  [[nodiscard]] Bytes answer_hello();
  [[nodiscard]] bool is_plausible() const;

  Membership own_;
  Bytes hello_;
  Secret nonce_{};
  StreamKey key_;
};

}  // namespace hccl::transport
