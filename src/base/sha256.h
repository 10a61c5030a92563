// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hccl {

using Digest = std::array<std::byte, 32>;

// An incremental hash. finish() may be called only once. The object wipes its copies of the data,
// which may be secret.
class Sha256 {
 public:
  Sha256() = default;
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> data);
  [[nodiscard]] Digest finish();

 private:
  static constexpr std::size_t kBlockSize = 64;

  void compress();

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlockSize> block_{};
  std::size_t used_ = 0;
  std::uint64_t length_ = 0;
};

[[nodiscard]] Digest sha256(std::span<const std::byte> data);

}  // namespace hccl
