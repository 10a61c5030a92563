// SPDX-License-Identifier: Apache-2.0
// Waiting for a message of whichever rank offers one first.
#include "comm/communicator.h"
#include "network/network_backend.h"
#include "network/network_messages.h"

namespace hccl::comm {
namespace {

constexpr std::chrono::milliseconds kLook{500};  // for what rings nobody

}  // namespace

std::optional<node::Offer> Communicator::probe(std::chrono::milliseconds timeout) {
  throw_if_failed();
  if (!segment_) return std::nullopt;  // there is nobody else
  // A deadline of zero would be none.
  const bool only_looks = timeout.count() == 0;
  const Deadline deadline = Deadline::after(timeout);
  std::optional<node::Offer> found;
  const auto look = [&] {
    const std::lock_guard lock(lanes_lock_);  // while receives have no numbers, nobody takes it
    found = engine_->mailboxes().find_offer(first_probed_);
    return found.has_value();
  };
  if (network_) {
    found = network_->messages().probe(first_probed_, only_looks, deadline);
  } else {
    Waiter waiter(segment_->ladder());
    while (!look() && !only_looks && !deadline.expired()) {
      throw_if_failed();
      if (waiter.poll_again()) continue;
      engine_->mailboxes().await_mail(deadline.remaining(kLook), look);
      if (found) break;
      waiter = Waiter(segment_->ladder());
    }
  }
  if (found) first_probed_ = (found->source + 1) % size_;
  throw_if_failed();
  return found;
}

}  // namespace hccl::comm
