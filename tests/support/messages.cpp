// SPDX-License-Identifier: Apache-2.0
// Lays out, fills and compares the buffers of messages.
#include "messages.h"

#include "elements.h"

#include <algorithm>

namespace hccl::test {
namespace {

constexpr std::size_t kMessageGuard = 67;
constexpr std::byte kMessagePoison{0xA5};

// Writes, between the guards, the content of message `tag` from `source` to `destination`.
void fill(std::vector<std::byte>& buffer, std::size_t bytes, int source, int destination,
          std::uint64_t tag) {
  const std::uint64_t seed = tag * 4096 + static_cast<std::uint64_t>(destination);
  for (std::size_t at = 0; at < bytes; ++at) {
    buffer[kMessageGuard + at] =
        static_cast<std::byte>(element_word(hcclUint8, Data::bits, seed, source, at));
  }
}

}  // namespace

Messages::Buffer::Buffer(synDeviceId device, std::size_t bytes, int peer_in, bool received_in)
    : memory(device, bytes + 2 * kMessageGuard),
      before(bytes + 2 * kMessageGuard, kMessagePoison),
      expected(before),
      peer(peer_in),
      received(received_in) {}

Messages::Buffer& Messages::add(int peer, std::size_t bytes, bool received, std::uint64_t tag,
                                synStreamHandle stream) {
  Buffer& buffer = buffers_.emplace_back(session_.device(), bytes, peer, received);
  if (received) {
    fill(buffer.expected, bytes, peer, group_.rank, tag);
  } else {
    fill(buffer.before, bytes, group_.rank, peer, tag);
    buffer.expected = buffer.before;
  }
  const std::uint64_t mix = tag + 2 * static_cast<std::uint64_t>(group_.rank) + (received ? 1 : 0);
  const Placement place = placement_of(placement_, mix);
  if (place == Placement::host) buffer.host = buffer.before;
  if (place == Placement::pinned)
    buffer.pinned = std::make_unique<PinnedMemory>(session_.device(), buffer.before);
  buffer.viewed = place == Placement::view;
  upload(stream, buffer.before, buffer.memory.address());
  return buffer;
}

void* Messages::Buffer::address() {
  if (!host.empty()) return host.data() + kMessageGuard;
  if (pinned) return pinned->bytes().data() + kMessageGuard;
  if (viewed) return static_cast<std::byte*>(memory.view()) + kMessageGuard;
  return device_pointer(memory.address() + kMessageGuard);
}

hcclResult_t Messages::send(int peer, std::size_t count, hcclDataType_t type, std::uint64_t tag,
                            synStreamHandle stream) {
  Buffer& buffer = add(peer, count * size_of(type), false, tag, stream);
  return hcclSend(buffer.address(), count, type, peer, group_.handle, stream);
}

hcclResult_t Messages::receive(int peer, std::size_t count, hcclDataType_t type, std::uint64_t tag,
                               synStreamHandle stream) {
  Buffer& buffer = add(peer, count * size_of(type), true, tag, stream);
  return hcclRecv(buffer.address(), count, type, peer, group_.handle, stream);
}

void Messages::verify(synStreamHandle stream) { compare(stream, false); }

void Messages::verify_untouched(synStreamHandle stream) { compare(stream, true); }

void Messages::compare(synStreamHandle stream, bool untouched) {
  for (const Buffer& buffer : buffers_) {
    std::vector<std::byte> after = buffer.host;
    if (buffer.pinned) {
      after.assign(buffer.pinned->bytes().begin(), buffer.pinned->bytes().end());
    } else if (after.empty()) {
      after.resize(buffer.before.size());
      download(stream, buffer.memory.address(), after);
    }
    succeed(synStreamSynchronize(stream));
    const auto& wanted = untouched ? buffer.before : buffer.expected;
    const auto [got, want] = std::mismatch(after.begin(), after.end(), wanted.begin());
    require(got == after.end(),
            join("rank ", group_.rank, buffer.received ? " from " : " to ", buffer.peer, ": byte ",
                 got - after.begin(), " of ", after.size(), " is ",
                 got == after.end() ? 0 : std::to_integer<int>(*got)));
  }
}

}  // namespace hccl::test
