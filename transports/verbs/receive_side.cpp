// SPDX-License-Identifier: Apache-2.0
#include "verbs/receive_side.h"

#include "base/error.h"
#include "verbs/send_side.h"

#include <algorithm>
#include <cstring>

namespace hccl::verbs {

bool ReceiveSide::arrive(const Message& message) {
  const bool straight = message.kind == Message::Kind::direct;
  if (!window_.arrive(straight ? 0 : message.bytes)) return false;
  // Ten bits of the number are told, and few are under way.
  const std::uint32_t unseen = (invitations_ - message.messages) & Message::kMostMessages;
  if (unseen > kMostInvitations) return false;
  seen_ = invitations_ - unseen;
  return !straight || host_.arrive(message.bytes, window_.arrived(), window_.released());
}

std::span<const std::byte> ReceiveSide::lend(std::size_t most) {
  if (host_.open()) {
    throw Error(hcclInternalError,
                "a stream is read while the rest of a destination is awaited; report this");
  }
  const std::size_t count = std::min(most, window_.held());
  window_.lend(count);
  return {memory_.incoming(window_.released()), count};
}

std::size_t ReceiveSide::release(std::size_t count) {
  const std::size_t released = window_.release(count);
  taken_ += released;
  return released;
}

std::size_t ReceiveSide::take_some(std::span<std::byte> destination) {
  const bool open = host_.open();
  std::size_t count = open ? host_.ring_first(window_.released(), window_.held()) : window_.held();
  count = std::min({count, destination.size(), kSlice});
  if (count > 0) {
    std::memcpy(destination.data(), memory_.incoming(window_.released()), count);
    window_.lend(count);
    taken_ += window_.release(count);
    if (open) host_.take(count, false);
    awaited_ = open ? awaited_ + count : nullptr;
    tell_credit(false);
    return count;
  }
  if (!open) return 0;
  count = std::min(host_.straight(), destination.size());
  if (count > 0 && destination.data() != awaited_) {
    throw Error(hcclInternalError,
                "a stream is read into another place than was invited; report this");
  }
  host_.take(count, true);
  awaited_ += count;
  taken_ += count;
  return count;
}

std::size_t ReceiveSide::take(std::span<std::byte> destination) {
  std::size_t done = 0;
  while (done < destination.size()) {
    const std::size_t count = take_some(destination.subspan(done));
    if (count == 0) break;
    done += count;
  }
  if (!host_.open()) {
    invited_.reset();
    invite(destination.subspan(done));
  }
  return done;
}

void ReceiveSide::invite(std::span<std::byte> destination) {
  if (destination.size() < kWorthInviting || invitations_ - seen_ >= kMostInvitations ||
      pair_.free_writes() < 2 || !pair_.copies(sizeof(Invitation)))
    return;
  const auto lease = cache_.lease(destination);
  if (!lease || lease->bytes < kWorthInviting) return;
  const Invitation invitation{taken_, reinterpret_cast<std::uintptr_t>(destination.data()),
                              static_cast<std::uint32_t>(lease->bytes),
                              lease->registration->remote_key()};
  const std::uint64_t place = invitations_ % kInvitationPlaces * sizeof(Invitation);
  static_cast<void>(pair_.write(std::as_bytes(std::span(&invitation, 1)), 0,
                                {notes_.address + place, notes_.key},
                                encode({Message::Kind::invitation, 0, 0})));
  ++invitations_;
  invited_ = lease->registration;
  awaited_ = destination.data();
  host_.invite(lease->bytes);
}

void ReceiveSide::tell_credit(bool idle) {
  if (!window_.credit_due() || (!idle && window_.credit_can_wait()) || pair_.free_writes() < 2)
    return;
  static_cast<void>(pair_.write({}, 0, ring_, encode(window_.take_credit())));
}

}  // namespace hccl::verbs
