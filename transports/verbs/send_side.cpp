// SPDX-License-Identifier: Apache-2.0
#include "verbs/send_side.h"

#include <algorithm>

namespace hccl::verbs {
namespace {

// Less is copied sooner than its registration is found and its completion taken.
constexpr std::size_t kWorthLeasing = std::size_t{8} << 10;

}  // namespace

SendSide::Way SendSide::way(std::uint64_t position) const {
  if (!window_.may_send() || pair_.free_writes() <= kPlacesForOthers) return {};
  if (const std::size_t welcome = guest_.welcome(position); welcome > 0)
    return {{guest_.address(position), guest_.key()}, std::min(welcome, kSlice), true};
  const std::uint64_t at = window_.sent() % kRingBytes;
  return {{ring_.address + at, ring_.key},
          std::min({window_.room(), static_cast<std::size_t>(kRingBytes - at), kSlice}),
          false};
}

std::size_t SendSide::room() const {
  return way(written_).most == 0 ? 0 : guest_.welcome(written_) + window_.room();
}

std::uint64_t SendSide::write(std::span<const std::byte> bytes, std::uint32_t key, const Way& way) {
  const auto count = static_cast<std::uint32_t>(bytes.size());
  const std::uint32_t seen = invitations_ & Message::kMostMessages;
  const auto kind = way.straight ? Message::Kind::direct : Message::Kind::data;
  const std::uint64_t number = pair_.write(bytes, key, way.target, encode({kind, count, seen}));
  written_ += count;
  if (way.straight) {
    window_.send_straight();
  } else {
    window_.send_through_ring(count);
  }
  return number;
}

std::size_t SendSide::send_registered(std::span<const std::byte> part) {
  const Way to = way(written_);
  if (to.most == 0) return 0;
  const auto lease = cache_.lease(part.first(std::min(part.size(), to.most)));
  if (!lease) return 0;
  const std::uint64_t number =
      write(part.first(lease->bytes), lease->registration->local_key(), to);
  held_.push_back({number, staged_, lease->registration});
  ++leased_;
  return lease->bytes;
}

std::size_t SendSide::stage(std::span<const std::byte> part) {
  const std::span<std::byte> place = memory_.outgoing(staged_);
  const std::size_t most = way(written_).most;
  const auto free = kRingBytes - static_cast<std::size_t>(staged_ - unstaged_);
  const std::size_t count =
      most > unwritten_ ? std::min({part.size(), most - unwritten_, place.size(), free}) : 0;
  std::copy_n(part.begin(), count, place.begin());
  staged_ += count;
  unwritten_ += count;
  if (unwritten_ == most || count == place.size()) write_staged();
  return count;
}

void SendSide::write_staged() {
  if (unwritten_ == 0) return;
  const auto bytes = memory_.outgoing(staged_ - unwritten_).first(unwritten_);
  const bool copied = pair_.copies(unwritten_);
  const std::uint64_t number = write(bytes, memory_.key_for_sending(), way(written_));
  unwritten_ = 0;
  if (!copied) {
    held_.push_back({number, staged_, nullptr});
  } else if (held_.empty()) {
    unstaged_ = staged_;
  } else {
    held_.back().staged_end = staged_;
  }
}

std::size_t SendSide::send_from(std::span<const std::byte> part) {
  if (part.size() >= kWorthLeasing) {
    write_staged();
    if (const std::size_t count = send_registered(part); count > 0) return count;
  }
  return stage(part);
}

std::size_t SendSide::send(std::span<const std::span<const std::byte>> parts) {
  std::size_t taken = 0;
  for (auto part : parts) {
    while (!part.empty()) {
      const std::size_t count = send_from(part);
      if (count == 0) break;
      part = part.subspan(count);
      taken += count;
    }
    if (!part.empty()) break;
  }
  write_staged();
  return taken;
}

void SendSide::settle() {
  while (!held_.empty() && held_.front().write <= pair_.completed()) {
    unstaged_ = held_.front().staged_end;
    leased_ -= held_.front().registration ? 1U : 0U;
    held_.pop_front();
  }
}

void SendSide::abandon() {
  held_.clear();
  leased_ = 0;
}

}  // namespace hccl::verbs
