// SPDX-License-Identifier: Apache-2.0
// The exchange of two ends over the connection that has proved who they are, before their queue
// pairs can work: what the pair has to know, and then that it is ready to receive.
#pragma once

#include "base/fields.h"
#include "transport/endpoint.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace hccl::verbs {

// The facts of one end.
struct Facts {
  std::uint32_t queue_pair = 0;    // 24 bits
  std::uint32_t first_packet = 0;  // 24 bits: where its packets begin to be numbered
  std::array<std::uint8_t, 16> gid{};
  std::uint32_t mtu = 0;           // bytes: of its port
  std::uint64_t ring_address = 0;  // where the peer writes
  std::uint32_t ring_key = 0;
  std::uint64_t notes_address = 0;  // where the peer writes invitations
  std::uint32_t notes_key = 0;

  friend bool operator==(const Facts&, const Facts&) = default;
};

constexpr std::size_t kFactsBytes = 56;

[[nodiscard]] Bytes serialize(const Facts& facts);
// Nothing if no rank of this version sends that.
[[nodiscard]] std::optional<Facts> parse_facts(std::span<const std::byte> bytes);

// One thread; no call blocks.
class Introduction {
 public:
  enum class Outcome : std::uint8_t { waiting, done, closed };

  // Sends what is to be sent and looks for what the other side says.
  void send(std::span<const std::byte> bytes) {
    to_send_.insert(to_send_.end(), bytes.begin(), bytes.end());
  }
  // Done when all has been sent and `count` bytes have come, which heard() then holds.
  [[nodiscard]] Outcome poll(int socket, std::size_t count);
  [[nodiscard]] std::span<const std::byte> heard() const { return heard_; }
  void forget_heard() { heard_.clear(); }
  [[nodiscard]] bool has_unsent() const { return !to_send_.empty(); }

 private:
  Bytes to_send_;
  Bytes heard_;
};

}  // namespace hccl::verbs
