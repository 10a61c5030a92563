// SPDX-License-Identifier: Apache-2.0
// The key with which the ranks of a unique id authenticate, and the warnings if no secret is set or
// it is short.
#pragma once

#include "base/secret_bytes.h"
#include "bootstrap/unique_id.h"

#include <cstdint>

namespace hccl::bootstrap {

// Returns the secret that the ranks share in addition to the id: HCCL_SECRET, or the contents of
// HCCL_SECRET_FILE. Returns no bytes if neither variable is set. For a fixed address, warns once
// per process about a short secret, and about a missing secret if the address is on another
// machine. Throws Error(hcclInvalidArgument) if both variables are set or the file is unusable.
// Also throws it for a fixed address that other machines can reach, if HCCL_REQUIRE_SECRET is set
// and the secret is missing or too short.
[[nodiscard]] SecretBytes join_secret(const UniqueId& id);

// The key that ranks derive from the secret in the id, if there is one, and from join_secret().
// Thread safety: one thread at a time.
class JoinKey {
 public:
  // Throws as join_secret() does.
  explicit JoinKey(const UniqueId& id);
  // Makes a key for sessions only. `is_secret`: false if anyone can compute the key.
  JoinKey(SecretBytes session_key, bool is_secret);

  // Returns false if there is no secret: then anyone can compute the key, so it proves nothing.
  [[nodiscard]] bool is_secret() const { return is_secret_; }
  // Returns the pre-shared key of TLS sessions. The first call derives it, and stretches
  // join_secret(), which may be guessable: this blocks for about a tenth of a second, once per
  // process and secret. Throws Error(hcclSystemError) if OpenSSL's configuration forbids it.
  [[nodiscard]] const SecretBytes& session_key() const;
  // Returns a number with which processes of one user compare their secrets. If a core dump reveals
  // it, its 16 bits cannot confirm a guess of the secret, although they rule out most wrong
  // guesses.
  [[nodiscard]] std::uint16_t check() const;
  // Returns whether the first call of session_key() stretches a secret.
  [[nodiscard]] bool needs_stretching() const { return !shared_.empty(); }

 private:
  SecretBytes of_id_;  // empty for a fixed address
  SecretBytes shared_;
  bool is_secret_ = false;
  mutable SecretBytes session_key_;
};

}  // namespace hccl::bootstrap
