// SPDX-License-Identifier: Apache-2.0
// Serialises the parameters, and exchanges them over a non-blocking socket.
#include "verbs/qp_exchange.h"

#include "base/retry.h"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>

namespace hccl::verbs {
namespace {

constexpr std::uint8_t kQpInfoFormat = 1;
constexpr std::uint32_t kMax24Bits = (1U << 24) - 1;
constexpr std::uint32_t kSmallestMtu = 256;
constexpr std::uint32_t kLargestMtu = 4096;

bool would_block(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

Bytes serialize(const QpInfo& info) {
  WireWriter writer;
  writer.put_u32(kQpInfoFormat);
  writer.put_u32(info.queue_pair);
  writer.put_u32(info.first_packet);
  writer.put_bytes(std::as_bytes(std::span(info.gid)));
  writer.put_u32(info.mtu);
  writer.put_u64(info.ring_address);
  writer.put_u32(info.ring_key);
  writer.put_u64(info.adverts_address);
  writer.put_u32(info.adverts_key);
  return writer.take();
}

std::optional<QpInfo> parse_qp_info(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  QpInfo info;
  const bool known = reader.u32() == kQpInfoFormat;
  info.queue_pair = reader.u32();
  info.first_packet = reader.u32();
  const auto gid = reader.array<sizeof(info.gid)>();
  std::ranges::transform(gid, info.gid.begin(),
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  info.mtu = reader.u32();
  info.ring_address = reader.u64();
  info.ring_key = reader.u32();
  info.adverts_address = reader.u64();
  info.adverts_key = reader.u32();
  const bool sound = info.queue_pair <= kMax24Bits && info.first_packet <= kMax24Bits &&
                     info.mtu >= kSmallestMtu && info.mtu <= kLargestMtu;
  if (!known || !reader.complete() || !sound) return std::nullopt;
  return info;
}

QpExchange::Status QpExchange::poll(int socket, std::size_t count) {
  while (!to_send_.empty()) {
    const ssize_t sent = retried([&] {
      return ::send(socket, to_send_.data(), to_send_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    });
    if (sent < 0 && !would_block(errno)) return Status::closed;
    if (sent < 0) break;
    to_send_.erase(to_send_.begin(), to_send_.begin() + sent);
  }
  std::array<std::byte, 64> buffer{};
  while (received_.size() < count) {
    const std::size_t most = std::min(buffer.size(), count - received_.size());
    const ssize_t got = recv(socket, buffer.data(), most, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !would_block(errno))) return Status::closed;
    if (got < 0) return Status::waiting;
    received_.insert(received_.end(), buffer.begin(), buffer.begin() + got);
  }
  return to_send_.empty() ? Status::done : Status::waiting;
}

}  // namespace hccl::verbs
