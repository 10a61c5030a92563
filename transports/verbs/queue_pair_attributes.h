// SPDX-License-Identifier: Apache-2.0
// The states of a reliable connected (RC) queue pair over RoCE v2, and the attributes that
// ibv_modify_qp requires at each transition.
#pragma once

#include "verbs/gid.h"

#include <cstdint>

#include <infiniband/verbs.h>

namespace hccl::verbs {

// The time-out for acknowledgements. A packet is retransmitted after 4.096 us * 2^17, half a
// second, and NICs may wait up to four times as long. A shorter time-out can break queue pairs
// between hosts that are merely loaded: a software NIC (rxe) acknowledges in kernel threads, which
// compete for cores like any other thread.
constexpr std::uint8_t kAckTimeout = 17;
constexpr std::uint8_t kRetries = 6;  // the maximum is 7, which rxe treats as unlimited
// 7 means unlimited: a peer that is slow to post receives is not at fault. Credits make this case
// rare.
constexpr std::uint8_t kReceiverNotReadyRetries = 7;
constexpr std::uint8_t kReceiverNotReadyTimer = 12;  // 0.64 ms between retries

struct QueuePairParameters {
  std::uint8_t own_port = 1;
  std::uint8_t own_gid_index = 0;
  std::uint32_t own_mtu = 0;            // the port's active MTU in bytes
  std::uint32_t own_packet_number = 0;  // the first sequence number sent; 24 bits
  std::uint32_t peer_queue_pair = 0;    // 24 bits
  std::uint32_t peer_packet_number = 0;
  std::uint32_t peer_mtu = 0;
  GidBytes peer_gid{};
  // Every router on the path decrements the limit; 64 is the default of IP stacks.
  std::uint8_t hop_limit = 64;
  std::uint8_t traffic_class = 0;                    // DSCP and ECN of the packets' IP headers
  unsigned remote_access = IBV_ACCESS_REMOTE_WRITE;  // the peer's access to registered memory
};

struct QueuePairChange {
  ibv_qp_attr attributes{};
  int mask = 0;
};

// Returns the largest MTU that both ports support. Throws Error(hcclInternalError) if it is below
// 256 bytes, the smallest MTU that a port can have.
[[nodiscard]] ibv_mtu path_mtu(std::uint32_t own_bytes, std::uint32_t peer_bytes);

[[nodiscard]] QueuePairChange to_initialized(const QueuePairParameters& parameters);
[[nodiscard]] QueuePairChange to_ready_to_receive(const QueuePairParameters& parameters);
[[nodiscard]] QueuePairChange to_ready_to_send(const QueuePairParameters& parameters);
// Returns the transition to the error state, which is allowed from any state. All posted requests
// then complete as flushed.
[[nodiscard]] QueuePairChange to_error();

// Checks the order of the transitions. No transition leads back to an earlier state: a failed queue
// pair is destroyed.
class QueuePairState {
 public:
  enum class Phase : std::uint8_t { reset, initialized, ready_to_receive, ready_to_send, error };

  [[nodiscard]] Phase phase() const { return phase_; }
  // Advances to `next`. Throws Error(hcclInternalError) and keeps the phase if the transition is
  // out of order.
  void advance(Phase next);

 private:
  Phase phase_ = Phase::reset;
};

}  // namespace hccl::verbs
