// SPDX-License-Identifier: Apache-2.0
// Derives keys from secrets.
#pragma once

#include "base/secret_bytes.h"

#include <cstddef>
#include <span>
#include <string_view>

namespace hccl::crypto {

constexpr std::size_t kKeySize = 32;  // bytes

// Returns a key of kKeySize bytes (HKDF with SHA-256, RFC 5869). Keys for different purposes reveal
// nothing about each other. The secret must have 128 random bits or more. Throws
// Error(hcclSystemError) if OpenSSL's configuration forbids it, Error(hcclInvalidUsage) while the
// process exits, or std::bad_alloc.
[[nodiscard]] SecretBytes derive_key(std::span<const std::byte> secret, std::string_view purpose);

// Does the same for a secret that can be guessed: it takes about a tenth of a second and 32 MiB of
// memory for each guess (scrypt, RFC 7914). Blocks for that long.
// Throws as derive_key() does.
[[nodiscard]] SecretBytes stretch_key(std::span<const std::byte> secret, std::string_view purpose);

}  // namespace hccl::crypto
