// SPDX-License-Identifier: Apache-2.0
// The last message of an end that leaves in good order, over the connection that the two have met
// on: how many bytes of the stream it has taken. The peer then knows that its bytes have come even
// where the device does not, because the last acknowledgement was lost with the queue pair that
// would have sent it again.
#pragma once

#include "base/fields.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hccl::verbs {

class Farewell {
 public:
  // Does not block; a connection that takes nothing is not worth more.
  static void say(int socket, std::uint64_t taken) noexcept;

  enum class Connection : std::uint8_t { open, closed, failed };  // failed: see errno
  // Takes what the peer has said.
  [[nodiscard]] Connection listen(int socket) noexcept;
  // How many bytes the peer has taken, once it has said so.
  [[nodiscard]] std::optional<std::uint64_t> taken() const;

 private:
  std::array<std::byte, sizeof(std::uint64_t)> heard_{};
  std::size_t count_ = 0;
};

}  // namespace hccl::verbs
