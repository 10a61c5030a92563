// SPDX-License-Identifier: Apache-2.0
// A code covers the payload's hash instead of the payload, so that a payload broadcast to thousands
// of ranks is hashed only once.
#include "bootstrap/frame_seal.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hccl::bootstrap {
namespace {

// Domain-separation labels: a code computed for one use of a key is invalid for every other use.
constexpr std::string_view kConnection = "hccl-bootstrap-2";
constexpr std::string_view kRankToServer = "rank-to-server";
constexpr std::string_view kServerToRank = "server-to-rank";
constexpr std::string_view kFrame = "frame";
constexpr std::string_view kCommunicator = "hccl-communicator-2";

Digest labelled(std::span<const std::byte> key, std::string_view label,
                std::span<const std::byte> first = {}, std::span<const std::byte> second = {}) {
  const std::array<std::span<const std::byte>, 3> parts{std::as_bytes(std::span(label)), first,
                                                        second};
  return hmac(key, parts);
}

}  // namespace

FrameSeal::FrameSeal(Party own, std::span<const std::byte> key, std::span<const std::byte> opening,
                     std::span<const std::byte> greeting) {
  const Digest session = labelled(key, kConnection, opening, greeting);
  sent_.key = labelled(session, kRankToServer);
  received_.key = labelled(session, kServerToRank);
  if (own == Party::server) std::swap(sent_, received_);
}

Digest FrameSeal::Sequence::next_code(FrameType type, const Digest& payload) {
  WireWriter place;
  place.put_u64(frames++);
  place.put_u8(static_cast<std::uint8_t>(type));
  return labelled(key, kFrame, place.bytes(), payload);
}

Digest FrameSeal::next_code(FrameType type, const Digest& payload) {
  return sent_.next_code(type, payload);
}

bool FrameSeal::open(Frame& frame) {
  constexpr std::size_t kSize = sizeof(Digest);
  if (frame.payload.size() < kSize) return false;
  const auto payload = std::span(frame.payload).first(frame.payload.size() - kSize);
  const Digest expected = received_.next_code(frame.type, sha256(payload));
  if (!equal_in_constant_time(expected, std::span(frame.payload).last(kSize))) return false;
  frame.payload.resize(payload.size());
  return true;
}

Secret communicator_secret(std::span<const std::byte> key, const Secret& salt) {
  const Digest derived = labelled(key, kCommunicator, salt);
  Secret secret{};
  std::copy_n(derived.begin(), secret.size(), secret.begin());
  return secret;
}

}  // namespace hccl::bootstrap
