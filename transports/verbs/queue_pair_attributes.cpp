// SPDX-License-Identifier: Apache-2.0
// The attributes of each transition of a queue pair. The masks are the minimum that
// ibv_modify_qp(3) requires for a reliable connection, because a NIC may reject other attributes.
#include "verbs/queue_pair_attributes.h"

#include "base/error.h"
#include "base/text.h"
#include "verbs/ports.h"

#include <algorithm>
#include <array>

namespace hccl::verbs {
namespace {

// Number of concurrent RDMA reads. The endpoints issue none, but a NIC may reject 0.
constexpr std::uint8_t kReadsInFlight = 1;

constexpr std::array<const char*, 5> kPhases{"reset", "initialized", "ready to receive",
                                             "ready to send", "error"};

const char* name_of(QueuePairState::Phase phase) {
  return kPhases.at(static_cast<std::size_t>(phase));
}

}  // namespace

ibv_mtu path_mtu(std::uint32_t own_bytes, std::uint32_t peer_bytes) {
  const std::uint32_t most = std::min(own_bytes, peer_bytes);
  for (const ibv_mtu mtu : {IBV_MTU_4096, IBV_MTU_2048, IBV_MTU_1024, IBV_MTU_512, IBV_MTU_256}) {
    if (bytes_of(mtu) <= most) return mtu;
  }
  throw Error(hcclInternalError,
              text("the MTU of the path is ", most, " bytes (", own_bytes, " here, ", peer_bytes,
                   " at the peer), but RoCE needs at least 256; report this"));
}

QueuePairChange to_initialized(const QueuePairParameters& parameters) {
  QueuePairChange change;
  change.attributes.qp_state = IBV_QPS_INIT;
  change.attributes.pkey_index = 0;  // RoCE has one partition
  change.attributes.port_num = parameters.own_port;
  change.attributes.qp_access_flags = parameters.remote_access;
  change.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  return change;
}

QueuePairChange to_ready_to_receive(const QueuePairParameters& parameters) {
  QueuePairChange change;
  ibv_qp_attr& attributes = change.attributes;
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = path_mtu(parameters.own_mtu, parameters.peer_mtu);
  attributes.dest_qp_num = parameters.peer_queue_pair;
  attributes.rq_psn = parameters.peer_packet_number;
  attributes.max_dest_rd_atomic = kReadsInFlight;
  attributes.min_rnr_timer = kReceiverNotReadyTimer;
  attributes.ah_attr.is_global = 1;  // RoCE addresses peers by GID alone
  attributes.ah_attr.port_num = parameters.own_port;
  attributes.ah_attr.grh.sgid_index = parameters.own_gid_index;
  attributes.ah_attr.grh.hop_limit = parameters.hop_limit;
  attributes.ah_attr.grh.traffic_class = parameters.traffic_class;
  std::copy(parameters.peer_gid.begin(), parameters.peer_gid.end(),
            attributes.ah_attr.grh.dgid.raw);
  change.mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  return change;
}

QueuePairChange to_ready_to_send(const QueuePairParameters& parameters) {
  QueuePairChange change;
  change.attributes.qp_state = IBV_QPS_RTS;
  change.attributes.sq_psn = parameters.own_packet_number;
  change.attributes.max_rd_atomic = kReadsInFlight;
  change.attributes.timeout = kAckTimeout;
  change.attributes.retry_cnt = kRetries;
  change.attributes.rnr_retry = kReceiverNotReadyRetries;
  change.mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT |
                IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  return change;
}

QueuePairChange to_error() {
  QueuePairChange change;
  change.attributes.qp_state = IBV_QPS_ERR;
  change.mask = IBV_QP_STATE;
  return change;
}

void QueuePairState::advance(Phase next) {
  const bool step =
      phase_ != Phase::error && static_cast<int>(next) == static_cast<int>(phase_) + 1;
  if (!step && next != Phase::error) {
    throw Error(hcclInternalError, text("a queue pair in state '", name_of(phase_),
                                        "' cannot become '", name_of(next), "'; report this"));
  }
  phase_ = next;
}

}  // namespace hccl::verbs
