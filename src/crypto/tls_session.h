// SPDX-License-Identifier: Apache-2.0
// One end of a TLS 1.3 connection, without its socket: the caller moves the encrypted bytes. Both
// ends must know the same key, so each authenticates the other. An ephemeral key exchange protects
// recorded traffic even if the key becomes known later.
#pragma once

#include "base/fields.h"
#include "base/secret_bytes.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hccl::crypto {

enum class TlsRole : std::uint8_t { client, server };

enum class TlsState : std::uint8_t {
  handshake,    // in progress
  established,  // both ends have proved that they know the key
  // The session has ended: it neither sends nor receives any longer.
  closed,     // by the peer in an orderly way
  not_tls,    // the peer does not speak TLS 1.3
  other_key,  // the peer does not know the key
  altered,    // a record does not authenticate: it was changed, repeated, reordered or dropped
  failed,     // the peer has broken the TLS protocol in another way
};

// Thread safety: one thread at a time. No member blocks. While the process exits, a session neither
// sends nor receives. A session that runs out of memory throws std::bad_alloc and must not be used
// again.
class TlsSession {
 public:
  // Both ends pass the same non-empty `key`. Throws Error(hcclSystemError) if OpenSSL's
  // configuration forbids what the session needs, Error(hcclInvalidUsage) while the process exits,
  // or std::bad_alloc.
  TlsSession(TlsRole role, std::span<const std::byte> key);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Takes bytes that have arrived from the peer, and appends to `plaintext` what they contain.
  void receive(std::span<const std::byte> encrypted, Bytes& plaintext);
  // Encrypts the bytes. During the handshake, keeps them until the session is established.
  void send(std::span<const std::byte> plaintext);
  // Returns the encrypted bytes that the session has produced for the peer since the last call. A
  // client produces the first bytes when it is created. A session that has failed may produce an
  // alert, which tells the peer why.
  [[nodiscard]] Bytes take_output();

  [[nodiscard]] TlsState state() const { return phase_; }
  // If the session has ended, returns the reason.
  [[nodiscard]] const std::string& why() const { return why_; }

  // Returns `bytes` bytes of a key that only the two ends know (RFC 8446, section 7.5). The ends
  // get the same key for the same label. Call it only while the session is established.
  [[nodiscard]] SecretBytes export_key(std::string_view label, std::size_t bytes) const;

 private:
  struct Buffers;

  [[nodiscard]] bool has_ended() const { return phase_ > TlsState::established; }
  // Call the following only while an OpensslCall exists.
  void advance_handshake();
  void encrypt(std::span<const std::byte> plaintext);
  void read_records(Bytes& plaintext);
  void note_failure(int result);

  std::unique_ptr<Buffers> openssl_;
  Bytes kept_;  // plaintext to send once the session is established
  TlsState phase_ = TlsState::handshake;
  std::string why_;
};

// Returns whether the bytes may be the start of a TLS record that a session sends.
[[nodiscard]] bool may_become_tls_record(std::span<const std::byte> bytes);

}  // namespace hccl::crypto
