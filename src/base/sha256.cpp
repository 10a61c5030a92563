// SPDX-License-Identifier: Apache-2.0
// Implements SHA-256 as specified in FIPS 180-4. It is not optimised, because ranks hash only ids
// and control messages.
#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace hccl {
namespace {

constexpr std::array<std::uint32_t, 64> kRoundConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* bytes) {
  return std::to_integer<std::uint32_t>(bytes[0]) << 24 |
         std::to_integer<std::uint32_t>(bytes[1]) << 16 |
         std::to_integer<std::uint32_t>(bytes[2]) << 8 | std::to_integer<std::uint32_t>(bytes[3]);
}

}  // namespace

Sha256::~Sha256() { explicit_bzero(block_.data(), block_.size()); }

void Sha256::update(std::span<const std::byte> data) {
  length_ += data.size();
  while (!data.empty()) {
    const std::size_t count = std::min(data.size(), kBlockSize - used_);
    std::copy_n(data.begin(), count, block_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += count;
    data = data.subspan(count);
    if (used_ == kBlockSize) compress();
  }
}

Digest Sha256::finish() {
  const std::uint64_t bits = length_ * 8;
  constexpr std::array<std::byte, 1> kMark{std::byte{0x80}};
  constexpr std::array<std::byte, 1> kZero{};
  update(kMark);
  while (used_ != kBlockSize - sizeof(bits)) update(kZero);
  std::array<std::byte, sizeof(bits)> length{};
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<std::byte>(bits >> (56 - 8 * i) & 0xff);
  }
  update(length);
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
  }
  return digest;
}

void Sha256::compress() {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(&block_[4 * i]);
  for (std::size_t i = 16; i < w.size(); ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> sum{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < sum.size(); ++i) state_[i] += sum[i];
  used_ = 0;
  explicit_bzero(w.data(), sizeof(w));
}

Digest sha256(std::span<const std::byte> data) {
  Sha256 hash;
  hash.update(data);
  return hash.finish();
}

}  // namespace hccl
