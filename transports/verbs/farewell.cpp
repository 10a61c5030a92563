// SPDX-License-Identifier: Apache-2.0
#include "verbs/farewell.h"

#include "base/retry.h"

#include <cerrno>
#include <span>

#include <sys/socket.h>

namespace hccl::verbs {

void Farewell::say(int socket, std::uint64_t taken) noexcept {
  std::array<std::byte, sizeof(taken)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(taken >> (8 * i) & 0xff);
  retried([&] { return ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL); });
}

Farewell::Connection Farewell::listen(int socket) noexcept {
  for (;;) {
    // A peer that says more is none of ours, and soon known by what it writes.
    std::byte ignored{};
    std::span<std::byte> place(heard_);
    place = count_ < place.size() ? place.subspan(count_) : std::span(&ignored, 1);
    const ssize_t got = recv(socket, place.data(), place.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return Connection::closed;
    if (got < 0) return errno == EAGAIN || errno == EINTR ? Connection::open : Connection::failed;
    if (count_ < heard_.size()) count_ += static_cast<std::size_t>(got);
  }
}

std::optional<std::uint64_t> Farewell::taken() const {
  if (count_ < heard_.size()) return std::nullopt;
  return WireReader(heard_).u64();
}

}  // namespace hccl::verbs
