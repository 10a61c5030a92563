// SPDX-License-Identifier: Apache-2.0
// The values that fields may have.
#include "bootstrap/messages.h"

#include <algorithm>

namespace hccl::bootstrap {
namespace {

bool is_rank(int rank) { return rank >= 0 && rank < kMostRanks; }

}  // namespace

template <>
bool is_valid(const Hello& message) {
  return message.process.pid > 0 && message.size >= 1 && message.size <= kMostRanks &&
         is_rank(message.rank);
}

template <>
bool is_valid(const Welcome& message) {
  return message.server.pid > 0 && (message.server_rank == -1 || is_rank(message.server_rank));
}

template <>
bool is_valid(const Waiting& message) {
  return std::ranges::all_of(message.awaited, is_rank);
}

template <>
bool is_valid(const ContributionMessage& message) {
  return is_rank(message.rank);
}

template <>
bool is_valid(const EntryMessage& message) {
  return is_rank(message.rank);
}

template <>
bool is_valid(const RankMessage& message) {
  return is_rank(message.rank);
}

template <>
std::optional<Opening> parse(std::span<const std::byte> bytes) {
  WireReader start(bytes);
  Opening message;
  message.version = start.u32();
  if (start.ok() && message.version != kProtocolVersion) return message;
  FieldReader reader(bytes);
  reader(message);
  if (!reader.complete()) return std::nullopt;
  return message;
}

}  // namespace hccl::bootstrap
