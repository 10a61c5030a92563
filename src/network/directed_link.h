// SPDX-License-Identifier: Apache-2.0
// The state of the messages in one direction between this rank and a peer.
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
  std::deque<std::uint64_t> queued_on;  // stream ids of the incomplete messages, in order
  // Opened on first use. Used only by the message whose turn it is, or by a probe.
  std::unique_ptr<transport::Endpoint> endpoint;
  transport::Counters counted{};
  // Set while a probe uses the endpoint. The probe gives the endpoint back soon after a receive has
  // been queued.
  std::atomic<bool> probed{false};
};

}  // namespace hccl::network
