// SPDX-License-Identifier: Apache-2.0
#include "verbs/receiver.h"

#include "base/error.h"
#include "verbs/sender.h"

#include <algorithm>
#include <cstring>

namespace hccl::verbs {

bool Receiver::arrive(const Immediate& message) {
  const bool direct = message.kind == Immediate::Kind::direct;
  if (!window_.arrive(direct ? 0 : message.bytes)) return false;
  // A message carries the low ten bits of the number of adverts that the peer has read. Ten bits
  // suffice, because at most kMaxAdverts adverts are in flight.
  const std::uint32_t unseen = (adverts_ - message.messages) & Immediate::kMaxMessages;
  if (unseen > kMaxAdverts) return false;
  seen_ = adverts_ - unseen;
  return !direct || receiver_view_.arrive(message.bytes, window_.arrived(), window_.released());
}

std::span<const std::byte> Receiver::lend(std::size_t most) {
  if (receiver_view_.open()) {
    throw Error(hcclInternalError,
                "a stream is read while an advertised destination is not full; report this");
  }
  const std::size_t count = std::min(most, window_.held());
  window_.lend(count);
  return {memory_.incoming(window_.released()), count};
}

std::size_t Receiver::release(std::size_t count) {
  const std::size_t released = window_.release(count);
  taken_ += released;
  return released;
}

std::size_t Receiver::take_some(std::span<std::byte> destination) {
  const bool open = receiver_view_.open();
  std::size_t count =
      open ? receiver_view_.ring_first(window_.released(), window_.held()) : window_.held();
  count = std::min({count, destination.size(), kSlice});
  if (count > 0) {
    std::memcpy(destination.data(), memory_.incoming(window_.released()), count);
    window_.lend(count);
    taken_ += window_.release(count);
    if (open) receiver_view_.take(count, false);
    awaited_ = open ? awaited_ + count : nullptr;
    return_credit(false);
    return count;
  }
  if (!open) return 0;
  count = std::min(receiver_view_.direct(), destination.size());
  if (count > 0 && destination.data() != awaited_) {
    throw Error(hcclInternalError,
                "a stream is read into a buffer that was not advertised; report this");
  }
  receiver_view_.take(count, true);
  awaited_ += count;
  taken_ += count;
  return count;
}

std::size_t Receiver::take(std::span<std::byte> destination) {
  std::size_t done = 0;
  while (done < destination.size()) {
    const std::size_t count = take_some(destination.subspan(done));
    if (count == 0) break;
    done += count;
  }
  if (!receiver_view_.open()) {
    close_advert();
    advertise(destination.subspan(done));
  }
  return done;
}

// Withdraws the peer's right to write to the destination. advertise() has left room for the
// request. If the queue pair has failed, the window stays open, but the peer can write nothing.
void Receiver::close_advert() {
  if (!advertised_) return;
  if (window_of_advert_ == nullptr) return advertised_.reset();
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  closing_.push_back({kNever, advertised_});
  advertised_.reset();
  if (pair_.failure().text.empty()) closing_.back().request = pair_.close(*window_of_advert_);
}

void Receiver::release_completed() {
  while (!closing_.empty() && closing_.front().request <= pair_.completed()) closing_.pop_front();
}

void Receiver::advertise(std::span<std::byte> destination) {
  if (destination.size() < kLeastDirect || adverts_ - seen_ >= kMaxAdverts ||
      pair_.free_requests() <= kAdvertRequests || !pair_.copies(sizeof(Advert)))
    return;
  const auto lease = cache_.lease_for_peer(destination);
  if (!lease || lease->bytes < kLeastDirect) return;
  const std::span<std::byte> offered = destination.first(lease->bytes);
  advertised_ = lease->registration;
  std::uint32_t key = advertised_->remote_key();
  if (window_of_advert_ != nullptr) {
    pair_.open(*window_of_advert_, *advertised_, offered);
    key = window_of_advert_->rkey;
  }
  const Advert advert{taken_, reinterpret_cast<std::uintptr_t>(offered.data()),
                      static_cast<std::uint32_t>(offered.size()), key};
  const std::uint64_t place = adverts_ % kAdvertSlots * sizeof(Advert);
  static_cast<void>(pair_.write(std::as_bytes(std::span(&advert, 1)), 0,
                                {adverts_target_.address + place, adverts_target_.key},
                                encode({Immediate::Kind::advert, 0, 0})));
  ++adverts_;
  awaited_ = destination.data();
  receiver_view_.advertise(lease->bytes);
}

void Receiver::return_credit(bool idle) {
  if (!window_.credit_due() || (!idle && window_.credit_can_wait()) || pair_.free_requests() < 2)
    return;
  static_cast<void>(pair_.write({}, 0, ring_, encode(window_.take_credit())));
}

}  // namespace hccl::verbs
