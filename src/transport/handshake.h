// SPDX-License-Identifier: Apache-2.0
// The handshake on a new connection before the stream begins: a TLS 1.3 session, whose key is
// derived from the communicator's secret. Inside the session, the connector names the stream, and
// the acceptor answers. Then both sides leave TLS. A protected stream uses keys exported from the
// session.
//
//   connector -> acceptor   request: format, communicator, ranks, connection, protection
//   acceptor -> connector   answer: verdict, protection
#pragma once

#include "base/fields.h"
#include "base/protection.h"
#include "transport/stream_keys.h"
#include "transport/transport.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hccl::crypto {
class TlsSession;
enum class TlsRole : std::uint8_t;
}  // namespace hccl::crypto

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

// Reads one TLS record at a time and nothing beyond it, because the bytes after the answer belong
// to the stream.
class Handshake {
 public:
  enum class State : std::uint8_t { in_progress, done, refused };

  virtual ~Handshake() = default;
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  [[nodiscard]] State state() const { return state_; }
  // Returns the reason for the state `refused`, as a clause about the other side.
  [[nodiscard]] const std::string& why() const { return why_; }
  // Returns whether any byte has arrived.
  [[nodiscard]] bool has_heard() const { return has_heard_; }
  // Returns the maximum number of bytes to read next.
  [[nodiscard]] std::size_t wanted() const;
  // Takes at most wanted() bytes and returns the bytes to send, which may be empty.
  [[nodiscard]] Bytes take(std::span<const std::byte> bytes);

  // Returns how the stream is protected, and its keys. Call it only in the state `done`.
  [[nodiscard]] ProtectedStream stream() const;

 protected:
  // `protection`: the least protection that this rank demands.
  Handshake(crypto::TlsRole role, const Membership& own, Protection protection);
  Handshake(Handshake&&) noexcept = default;
  Handshake& operator=(Handshake&&) noexcept = default;

  // Called when decrypted bytes have arrived. `plaintext`: all bytes so far.
  virtual void on_plaintext(std::span<const std::byte> plaintext) = 0;

  // Returns the session. The first call creates it, so an acceptor has none until a whole record
  // has arrived that may be TLS.
  [[nodiscard]] crypto::TlsSession& session();
  [[nodiscard]] Bytes take_output();
  [[nodiscard]] Protection protection() const { return protection_; }
  void protect(Protection protection) { protection_ = protection; }
  void finish() { state_ = State::done; }
  void refuse(const std::string& why);

 private:
  void take_record();

  crypto::TlsRole role_;
  State state_ = State::in_progress;
  bool has_heard_ = false;
  std::shared_ptr<const SecretBytes> secret_;
  std::shared_ptr<crypto::TlsSession> session_;
  Protection protection_;
  Bytes record_;  // the part of a TLS record that has arrived
  Bytes plaintext_;
  std::string why_;
};

enum class Verdict : std::uint8_t { accepted = 1, claimed = 2 };

class ConnectorHandshake final : public Handshake {
 public:
  ConnectorHandshake(const Membership& own, const StreamKey& key,
                     Protection protection = Protection::off);

  // Returns the first bytes to send.
  [[nodiscard]] const Bytes& hello() const { return hello_; }

 private:
  void on_plaintext(std::span<const std::byte> plaintext) override;

  Bytes hello_;
};

class AcceptorHandshake final : public Handshake {
 public:
  explicit AcceptorHandshake(const Membership& own, Protection protection = Protection::off);

  // In the state `done`, key() names the stream that the connector has requested, and the caller
  // must send answer() to the connector.
  [[nodiscard]] const StreamKey& key() const { return key_; }
  // Returns the bytes that tell the connector the verdict.
  [[nodiscard]] Bytes answer(Verdict verdict);

 private:
  void on_plaintext(std::span<const std::byte> plaintext) override;
  [[nodiscard]] bool is_plausible() const;

  Membership own_;
  StreamKey key_;
};

}  // namespace hccl::transport
