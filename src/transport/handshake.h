// SPDX-License-Identifier: Apache-2.0
// The handshake on a new connection before the stream begins. It identifies the stream, and both
// sides prove that they know the communicator's secret, which is never sent.
//
//   connector -> acceptor   hello: format, nonce, communicator, ranks, connection
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

// Identifies a stream within a communicator.
struct StreamKey {
  int from = -1;  // the rank that connects: the smaller of the two
  int to = -1;
  ConnectionId connection;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 mistakes the operator for a null pointer
  friend auto operator<=>(const StreamKey&, const StreamKey&) = default;
};

// Returns the key of the stream between this rank and `peer`. Throws Error(hcclInternalError) if
// `peer` is this rank or out of range.
[[nodiscard]] StreamKey key_between(const Membership& own, int peer, ConnectionId connection);

// Each message has a fixed size, and a handshake reads nothing beyond the message it expects: the
// bytes after the verdict belong to the stream.
class Handshake {
 public:
  enum class State : std::uint8_t { in_progress, done, refused };

  [[nodiscard]] State state() const { return state_; }
  // Returns the reason for the state `refused`, as a clause about the other side.
  [[nodiscard]] const std::string& why() const { return why_; }
  // Returns the maximum number of bytes to read next.
  [[nodiscard]] std::size_t wanted() const { return expected_ - received_.size(); }

 protected:
  explicit Handshake(std::size_t expected) : expected_(expected) {}
  ~Handshake() = default;

  void receive(std::span<const std::byte> bytes);
  [[nodiscard]] bool is_whole() const { return received_.size() == expected_; }
  [[nodiscard]] std::span<const std::byte> received() const { return received_; }
  void expect(std::size_t count);
  void finish() { expect_nothing(State::done); }
  void refuse(const std::string& why);

 private:
  void expect_nothing(State state);

  State state_ = State::in_progress;
  std::size_t expected_;
  Bytes received_;
  std::string why_;
};

enum class Verdict : std::uint8_t { accepted = 1, claimed = 2 };

class ConnectorHandshake : public Handshake {
 public:
  ConnectorHandshake(const Membership& own, const StreamKey& key);

  // Returns the first message to send.
  [[nodiscard]] const Bytes& hello() const { return hello_; }
  // Takes at most wanted() bytes and returns the answer to send, which may be empty.
  [[nodiscard]] Bytes take(std::span<const std::byte> bytes);

 private:
  Secret secret_;
  Bytes hello_;
  bool challenged_ = false;
};

class AcceptorHandshake : public Handshake {
 public:
  explicit AcceptorHandshake(const Membership& own);

  // Takes at most wanted() bytes and returns the answer to send, which may be empty. When the
  // connector has authenticated, state() is `done`, and the caller must send a verdict about the
  // stream that key() names.
  [[nodiscard]] Bytes take(std::span<const std::byte> bytes);
  [[nodiscard]] const StreamKey& key() const { return key_; }
  [[nodiscard]] static Bytes encode(Verdict verdict);

 private:
  [[nodiscard]] Bytes answer_hello();
  [[nodiscard]] bool is_plausible() const;

  Membership own_;
  Bytes hello_;
  Secret nonce_{};
  StreamKey key_;
};

}  // namespace hccl::transport
