// SPDX-License-Identifier: Apache-2.0
// The life of a reliable connected (RC) queue pair over RoCE v2, as what ibv_modify_qp takes at
// each step.
#pragma once

#include "verbs/gid.h"

#include <cstdint>

#include <infiniband/verbs.h>

namespace hccl::verbs {

// An unacknowledged packet is sent again after 4.096 us * 2^17, half a second, and devices may take
// four times that. Shorter ones end queue pairs of a host that is merely loaded: a software device
// (rxe) acknowledges in the kernel's threads, and those wait for a core like any other.
constexpr std::uint8_t kAckTimeout = 17;
constexpr std::uint8_t kRetries = 6;  // 7 is the most, but rxe takes that for "for ever"
// 7 stands for "for ever". The peer's process may be slow to post receives, which is no fault;
// credits of the endpoints make it rare.
constexpr std::uint8_t kReceiverNotReadyRetries = 7;
constexpr std::uint8_t kReceiverNotReadyTimer = 12;  // 0.64 ms: how long such a sender waits

struct QueuePairFacts {
  std::uint8_t own_port = 1;
  std::uint8_t own_gid_index = 0;
  std::uint32_t own_mtu = 0;            // the port's active one, in bytes
  std::uint32_t own_packet_number = 0;  // of the first packet that we send; 24 bits
  std::uint32_t peer_queue_pair = 0;    // 24 bits
  std::uint32_t peer_packet_number = 0;
  std::uint32_t peer_mtu = 0;
  GidBytes peer_gid{};
  // Over routers each takes one off; 64 is what IP stacks begin with.
  std::uint8_t hop_limit = 64;
  std::uint8_t traffic_class = 0;                    // DSCP and ECN of the packets' IP headers
  unsigned remote_access = IBV_ACCESS_REMOTE_WRITE;  // what the peer may do to registered memory
};

struct QueuePairChange {
  ibv_qp_attr attributes{};
  int mask = 0;
};

// The largest MTU that both ports can carry. Throws Error(hcclInternalError) for one of less than
// 256 bytes, which no port has.
[[nodiscard]] ibv_mtu path_mtu(std::uint32_t own_bytes, std::uint32_t peer_bytes);

[[nodiscard]] QueuePairChange to_initialized(const QueuePairFacts& facts);
[[nodiscard]] QueuePairChange to_ready_to_receive(const QueuePairFacts& facts);
[[nodiscard]] QueuePairChange to_ready_to_send(const QueuePairFacts& facts);
// From any state: all that is posted completes as flushed.
[[nodiscard]] QueuePairChange to_error();

// Which step comes next. There is no way back: a queue pair that failed is destroyed.
class QueuePairState {
 public:
  enum class Phase : std::uint8_t { reset, initialized, ready_to_receive, ready_to_send, error };

  [[nodiscard]] Phase phase() const { return phase_; }
  // Throws Error(hcclInternalError) for a step out of order, and stays where it was.
  void advance(Phase next);

 private:
  Phase phase_ = Phase::reset;
};

}  // namespace hccl::verbs
