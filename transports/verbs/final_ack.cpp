// SPDX-License-Identifier: Apache-2.0
#include "verbs/final_ack.h"

#include "base/retry.h"

#include <cerrno>
#include <span>

#include <sys/socket.h>

namespace hccl::verbs {

void FinalAck::send(int socket, std::uint64_t consumed) noexcept {
  std::array<std::byte, sizeof(consumed)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(consumed >> (8 * i) & 0xff);
  retried([&] { return ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL); });
}

FinalAck::ConnectionState FinalAck::receive(int socket) noexcept {
  for (;;) {
    // Ignore any bytes after the acknowledgement.
    std::byte ignored{};
    std::span<std::byte> place(received_);
    place = count_ < place.size() ? place.subspan(count_) : std::span(&ignored, 1);
    const ssize_t got = recv(socket, place.data(), place.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return ConnectionState::closed;
    if (got < 0)
      return errno == EAGAIN || errno == EINTR ? ConnectionState::open : ConnectionState::failed;
    if (count_ < received_.size()) count_ += static_cast<std::size_t>(got);
  }
}

std::optional<std::uint64_t> FinalAck::consumed() const {
  if (count_ < received_.size()) return std::nullopt;
  return WireReader(received_).u64();
}

}  // namespace hccl::verbs
