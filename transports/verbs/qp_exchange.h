// SPDX-License-Identifier: Apache-2.0
// The out-of-band exchange between two ends over their authenticated TCP connection. Each end first
// sends the parameters of its queue pair, and then a byte once the queue pair is ready to receive.
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

// The parameters of one end.
struct QpInfo {
  std::uint32_t queue_pair = 0;    // 24 bits
  std::uint32_t first_packet = 0;  // 24 bits: the first packet sequence number
  std::array<std::uint8_t, 16> gid{};
  std::uint32_t mtu = 0;           // of the port, in bytes
  std::uint64_t ring_address = 0;  // where the peer writes
  std::uint32_t ring_key = 0;
  std::uint64_t adverts_address = 0;  // where the peer writes adverts
  std::uint32_t adverts_key = 0;

  friend bool operator==(const QpInfo&, const QpInfo&) = default;
};

constexpr std::size_t kQpInfoBytes = 56;

[[nodiscard]] Bytes serialize(const QpInfo& info);
// Parses serialised parameters. Returns nothing if the bytes are malformed or come from another
// version.
[[nodiscard]] std::optional<QpInfo> parse_qp_info(std::span<const std::byte> bytes);

// No call blocks, except that poll() may block briefly while kernel memory is short (base/retry.h).
// Thread safety: one thread at a time.
class QpExchange {
 public:
  enum class Status : std::uint8_t { waiting, done, closed };

  // Queues bytes for poll() to send.
  void send(std::span<const std::byte> bytes) {
    to_send_.insert(to_send_.end(), bytes.begin(), bytes.end());
  }
  // Sends queued bytes, and receives until received() has `count` bytes. Returns `done` when all
  // queued bytes have been sent and `count` bytes have arrived, `closed` if the connection has
  // ended or failed, and otherwise `waiting`.
  [[nodiscard]] Status poll(int socket, std::size_t count);
  [[nodiscard]] std::span<const std::byte> received() const { return received_; }
  void clear_received() { received_.clear(); }
  [[nodiscard]] bool has_unsent() const { return !to_send_.empty(); }

 private:
  Bytes to_send_;
  Bytes received_;
};

}  // namespace hccl::verbs
