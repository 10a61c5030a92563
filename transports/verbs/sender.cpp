// SPDX-License-Identifier: Apache-2.0
#include "verbs/sender.h"

#include <algorithm>

namespace hccl::verbs {
namespace {

// Minimum size of a part that is sent from registered memory. Copying fewer bytes is faster than
// looking up their registration and polling for their completion.
constexpr std::size_t kWorthLeasing = std::size_t{8} << 10;

}  // namespace

Sender::WriteTarget Sender::next_target(std::uint64_t position) const {
  if (!window_.may_send() || pair_.free_requests() <= kReservedRequests) return {};
  if (const std::size_t direct = sender_view_.direct_room(position); direct > 0)
    return {{sender_view_.address(position), sender_view_.key()}, std::min(direct, kSlice), true};
  const std::uint64_t at = window_.sent() % kRingBytes;
  return {{ring_.address + at, ring_.key},
          std::min({window_.room(), static_cast<std::size_t>(kRingBytes - at), kSlice}),
          false};
}

std::size_t Sender::room() const {
  return next_target(written_).most == 0 ? 0 : sender_view_.direct_room(written_) + window_.room();
}

std::uint64_t Sender::write(std::span<const std::byte> bytes, std::uint32_t key,
                            const WriteTarget& to) {
  const auto count = static_cast<std::uint32_t>(bytes.size());
  const std::uint32_t seen = adverts_ & Immediate::kMaxMessages;
  const auto kind = to.direct ? Immediate::Kind::direct : Immediate::Kind::data;
  const std::uint64_t number = pair_.write(bytes, key, to.memory, encode({kind, count, seen}));
  written_ += count;
  if (to.direct) {
    window_.send_direct();
  } else {
    window_.send_through_ring(count);
  }
  return number;
}

std::size_t Sender::send_registered(std::span<const std::byte> part) {
  const WriteTarget to = next_target(written_);
  if (to.most == 0) return 0;
  const auto lease = cache_.lease(part.first(std::min(part.size(), to.most)));
  if (!lease) return 0;
  const std::uint64_t number =
      write(part.first(lease->bytes), lease->registration->local_key(), to);
  held_.push_back({number, staged_, lease->registration});
  ++leased_;
  return lease->bytes;
}

std::size_t Sender::stage(std::span<const std::byte> part) {
  const std::span<std::byte> place = memory_.outgoing(staged_);
  const std::size_t most = next_target(written_).most;
  const auto free = kRingBytes - static_cast<std::size_t>(staged_ - unstaged_);
  const std::size_t count =
      most > unwritten_ ? std::min({part.size(), most - unwritten_, place.size(), free}) : 0;
  std::copy_n(part.begin(), count, place.begin());
  staged_ += count;
  unwritten_ += count;
  if (unwritten_ == most || count == place.size()) write_staged();
  return count;
}

void Sender::write_staged() {
  if (unwritten_ == 0) return;
  const auto bytes = memory_.outgoing(staged_ - unwritten_).first(unwritten_);
  const bool copied = pair_.copies(unwritten_);
  const std::uint64_t number = write(bytes, memory_.key_for_sending(), next_target(written_));
  unwritten_ = 0;
  if (!copied) {
    held_.push_back({number, staged_, nullptr});
  } else if (held_.empty()) {
    unstaged_ = staged_;
  } else {
    held_.back().staged_end = staged_;
  }
}

std::size_t Sender::send_from(std::span<const std::byte> part) {
  if (part.size() >= kWorthLeasing) {
    write_staged();
    if (const std::size_t count = send_registered(part); count > 0) return count;
  }
  return stage(part);
}

std::size_t Sender::send(std::span<const std::span<const std::byte>> parts) {
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

void Sender::release_completed() {
  while (!held_.empty() && held_.front().write <= pair_.completed()) {
    unstaged_ = held_.front().staged_end;
    leased_ -= held_.front().registration ? 1U : 0U;
    held_.pop_front();
  }
}

void Sender::abandon() {
  held_.clear();
  leased_ = 0;
}

}  // namespace hccl::verbs
