// SPDX-License-Identifier: Apache-2.0
// The 32-bit immediate value of an RDMA write with immediate.
#pragma once

#include <cstdint>

namespace hccl::verbs {

struct Immediate {
  enum class Kind : std::uint8_t {
    data = 0,    // `bytes` bytes have been appended to the ring
    credit = 1,  // `bytes` bytes released and `messages` messages received since the last credit
    direct = 2,  // `bytes` bytes have been written to the advertised range
    advert = 3,  // an advert has been written, see advert.h
  };

  static constexpr std::uint32_t kMaxBytes = (1U << 20) - 1;
  static constexpr std::uint32_t kMaxMessages = (1U << 10) - 1;

  Kind kind = Kind::data;
  std::uint32_t bytes = 0;
  // In data and direct messages: the low 10 bits of the number of adverts that the sender has read.
  std::uint32_t messages = 0;

  friend bool operator==(const Immediate&, const Immediate&) = default;
};

// The upper 2 bits are the kind, the next 10 the messages and the lower 20 the bytes, in host byte
// order.
[[nodiscard]] constexpr std::uint32_t encode(const Immediate& message) {
  return static_cast<std::uint32_t>(message.kind) << 30 | message.messages << 20 | message.bytes;
}

// Decodes any 32 bits. Sender and Receiver check whether a credit, data or direct message is valid.
[[nodiscard]] constexpr Immediate decode(std::uint32_t bits) {
  return {static_cast<Immediate::Kind>(bits >> 30), bits & Immediate::kMaxBytes,
          bits >> 20 & Immediate::kMaxMessages};
}

}  // namespace hccl::verbs
