// SPDX-License-Identifier: Apache-2.0
// A few bytes each way over a socket that does not block.
#include "verbs/introduction.h"

#include "base/retry.h"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>

namespace hccl::verbs {
namespace {

constexpr std::uint8_t kIntroductionFormat = 1;
constexpr std::uint32_t kMost24Bits = (1U << 24) - 1;
constexpr std::uint32_t kSmallestMtu = 256;
constexpr std::uint32_t kLargestMtu = 4096;

bool would_block(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

Bytes serialize(const Facts& facts) {
  WireWriter writer;
  writer.put_u32(kIntroductionFormat);
  writer.put_u32(facts.queue_pair);
  writer.put_u32(facts.first_packet);
  writer.put_bytes(std::as_bytes(std::span(facts.gid)));
  writer.put_u32(facts.mtu);
  writer.put_u64(facts.ring_address);
  writer.put_u32(facts.ring_key);
  writer.put_u64(facts.notes_address);
  writer.put_u32(facts.notes_key);
  return writer.take();
}

std::optional<Facts> parse_facts(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  Facts facts;
  const bool known = reader.u32() == kIntroductionFormat;
  facts.queue_pair = reader.u32();
  facts.first_packet = reader.u32();
  const auto gid = reader.array<sizeof(facts.gid)>();
  std::ranges::transform(gid, facts.gid.begin(),
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  facts.mtu = reader.u32();
  facts.ring_address = reader.u64();
  facts.ring_key = reader.u32();
  facts.notes_address = reader.u64();
  facts.notes_key = reader.u32();
  const bool sound = facts.queue_pair <= kMost24Bits && facts.first_packet <= kMost24Bits &&
                     facts.mtu >= kSmallestMtu && facts.mtu <= kLargestMtu;
  if (!known || !reader.complete() || !sound) return std::nullopt;
  return facts;
}

Introduction::Outcome Introduction::poll(int socket, std::size_t count) {
  while (!to_send_.empty()) {
    const ssize_t sent = retried([&] {
      return ::send(socket, to_send_.data(), to_send_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    });
    if (sent < 0 && !would_block(errno)) return Outcome::closed;
    if (sent < 0) break;
    to_send_.erase(to_send_.begin(), to_send_.begin() + sent);
  }
  std::array<std::byte, 64> buffer{};
  while (heard_.size() < count) {
    const std::size_t most = std::min(buffer.size(), count - heard_.size());
    const ssize_t got = recv(socket, buffer.data(), most, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !would_block(errno))) return Outcome::closed;
    if (got < 0) return Outcome::waiting;
    heard_.insert(heard_.end(), buffer.begin(), buffer.begin() + got);
  }
  return to_send_.empty() ? Outcome::done : Outcome::waiting;
}

}  // namespace hccl::verbs
