// SPDX-License-Identifier: Apache-2.0
// Random bytes for secrets and names, and a comparison in constant time.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace hccl {

using Secret = std::array<std::byte, 16>;

// Fills the bytes, at most 256, with random bits from the kernel. Throws Error(hcclSystemError).
void fill_random(std::span<std::byte> bytes);
// Returns 128 random bits from the kernel. Throws Error(hcclSystemError).
[[nodiscard]] Secret random_secret();

// Compares two byte strings. The running time does not depend on where they differ, so it reveals
// nothing to a peer that guesses a secret.
[[nodiscard]] bool equal_in_constant_time(std::span<const std::byte> a,
                                          std::span<const std::byte> b);

}  // namespace hccl
