// SPDX-License-Identifier: Apache-2.0
// Authenticates a connection to a root server: after the opening message and the greeting, every
// frame except a refusal carries an authentication code. Only a holder of the key can compute a
// code, and each code is valid for one frame on one connection.
#pragma once

#include "base/secret.h"
#include "base/sha256.h"
#include "bootstrap/wire.h"

#include <cstdint>
#include <span>

namespace hccl::bootstrap {

// Computes and checks the authentication codes of one end. A code is HMAC(key of the direction,
// frame number, type, SHA-256(payload)). The keys of both directions are derived from HMAC(key,
// opening, greeting), and thus from the nonces of both ends. With an empty key, the codes prove
// nothing.
class FrameSeal {
 public:
  enum class Party : std::uint8_t { rank, server };

  // `opening` and `greeting`: the payloads of the first frames that the rank and the server send.
  FrameSeal(Party own, std::span<const std::byte> key, std::span<const std::byte> opening,
            std::span<const std::byte> greeting);

  // Returns the code of the next frame that this end sends.
  [[nodiscard]] Digest next_code(FrameType type, const Digest& payload);
  // Checks and removes the code of the next frame that this end receives. Returns false if the code
  // is wrong or missing.
  [[nodiscard]] bool open(Frame& frame);

 private:
  struct Sequence {
    Digest key{};
    std::uint64_t frames = 0;

    [[nodiscard]] Digest next_code(FrameType type, const Digest& payload);
  };

  Sequence sent_;
  Sequence received_;
};

// Returns the secret with which the transports of a communicator authenticate. It is derived from
// the key and `salt` (Table::salt). If the key is empty, anyone who sees the salt can derive the
// secret.
[[nodiscard]] Secret communicator_secret(std::span<const std::byte> key, const Secret& salt);

}  // namespace hccl::bootstrap
