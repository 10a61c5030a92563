// SPDX-License-Identifier: Apache-2.0
// One direction of the messages between this rank and a peer.
#pragma once

#include "transport/endpoint.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

namespace hccl::network {

struct DirectedLink {
  std::atomic<std::uint64_t> turn{0};  // the number of the message whose turn it is
  std::uint64_t numbered = 0;
  std::deque<std::uint64_t> queued_on;  // streams of the incomplete messages, in order
  // Opened and used by the message whose turn it is.
  std::unique_ptr<transport::Endpoint> endpoint;
  transport::Counters counted{};
  // Set while a probe has borrowed the endpoint. The probe returns it soon after a receive has been
  // queued.
  std::atomic<bool> probed{false};
};

}  // namespace hccl::network
