// SPDX-License-Identifier: Apache-2.0
// The final acknowledgement: the number of bytes that an end has consumed. The end sends this
// number over the TCP connection when it closes the stream gracefully. The number confirms the
// arrival of data even if the NIC's last acknowledgement was lost and the queue pair that would
// have repeated it is gone.
#pragma once

#include "base/fields.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hccl::verbs {

class FinalAck {
 public:
  // Sends the acknowledgement. Gives up if the socket's buffer is full. Blocks only while kernel
  // memory is short, and then briefly (base/retry.h).
  static void send(int socket, std::uint64_t consumed) noexcept;

  enum class ConnectionState : std::uint8_t { open, closed, failed };  // failed: errno is set
  // Reads what the peer has sent and returns the state of the connection. Does not block.
  [[nodiscard]] ConnectionState receive(int socket) noexcept;
  // Returns the number of bytes that the peer has consumed, or nothing before its acknowledgement
  // has arrived.
  [[nodiscard]] std::optional<std::uint64_t> consumed() const;

 private:
  std::array<std::byte, sizeof(std::uint64_t)> received_{};
  std::size_t count_ = 0;
};

}  // namespace hccl::verbs
