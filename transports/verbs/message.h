// SPDX-License-Identifier: Apache-2.0
// What the 32 bits say that come with a write (RDMA WRITE WITH IMMEDIATE).
#pragma once

#include <cstdint>
#include <optional>

namespace hccl::verbs {

// Data: so many bytes have been written to the ring, behind those before. Credit: so many bytes of
// the ring and so many messages have been taken since the last credit.
struct Message {
  enum class Kind : std::uint8_t { data = 0, credit = 1 };

  static constexpr std::uint32_t kMostBytes = (1U << 20) - 1;
  static constexpr std::uint32_t kMostMessages = (1U << 10) - 1;

  Kind kind = Kind::data;
  std::uint32_t bytes = 0;
  std::uint32_t messages = 0;

  friend bool operator==(const Message&, const Message&) = default;
};

// 2 bits of kind, 10 of messages, 20 of bytes; in the order of the host.
[[nodiscard]] constexpr std::uint32_t encode(const Message& message) {
  return static_cast<std::uint32_t>(message.kind) << 30 | message.messages << 20 | message.bytes;
}

// Nothing if no rank of this version sends that.
[[nodiscard]] constexpr std::optional<Message> decode(std::uint32_t bits) {
  const std::uint32_t kind = bits >> 30;
  if (kind > static_cast<std::uint32_t>(Message::Kind::credit)) return std::nullopt;
  return Message{static_cast<Message::Kind>(kind), bits & Message::kMostBytes,
                 bits >> 20 & Message::kMostMessages};
}

}  // namespace hccl::verbs
