// SPDX-License-Identifier: Apache-2.0
// Each step sets what ibv_modify_qp(3) demands of a reliable connection, with the right values.
#include "verbs/queue_pair_attributes.h"

#include "base/error.h"
#include "gids.h"
#include "thrown.h"

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

using hccl::test::error_of;

QueuePairParameters facts_of_the_pair() {
  return {.own_port = 2,
          .own_gid_index = 3,
          .own_mtu = 4096,
          .own_packet_number = 0x123456,
          .peer_queue_pair = 0x00abcd,
          .peer_packet_number = 0x654321,
          .peer_mtu = 1024,
          .peer_gid = test::v4(10, 77, 0, 2),
          .traffic_class = 104};
}

TEST(QueuePairAttributes, InitNamesThePort) {
  const QueuePairChange change = to_initialized(facts_of_the_pair());
  EXPECT_EQ(change.mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(change.attributes.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(change.attributes.port_num, 2);
  EXPECT_EQ(change.attributes.pkey_index, 0);
  EXPECT_EQ(static_cast<int>(change.attributes.qp_access_flags), IBV_ACCESS_REMOTE_WRITE);
}

TEST(QueuePairAttributes, ReadyToReceiveNamesThePeer) {
  const QueuePairChange change = to_ready_to_receive(facts_of_the_pair());
  EXPECT_EQ(change.mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  const ibv_qp_attr& attributes = change.attributes;
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_1024) << "the smaller of both";
  EXPECT_EQ(attributes.dest_qp_num, 0x00abcdU);
  EXPECT_EQ(attributes.rq_psn, 0x654321U);
  EXPECT_EQ(attributes.max_dest_rd_atomic, 1);
  EXPECT_EQ(attributes.min_rnr_timer, 12);
  EXPECT_EQ(attributes.ah_attr.is_global, 1);
  EXPECT_EQ(attributes.ah_attr.port_num, 2);
  EXPECT_EQ(attributes.ah_attr.grh.sgid_index, 3);
  EXPECT_GE(attributes.ah_attr.grh.hop_limit, 64) << "routers are on the way";
  EXPECT_EQ(attributes.ah_attr.grh.traffic_class, 104);
  const GidBytes peer = facts_of_the_pair().peer_gid;
  EXPECT_TRUE(std::equal(peer.begin(), peer.end(), attributes.ah_attr.grh.dgid.raw));
}

TEST(QueuePairAttributes, ReadyToSendSetsTheRetries) {
  const QueuePairChange change = to_ready_to_send(facts_of_the_pair());
  EXPECT_EQ(change.mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT);
  EXPECT_EQ(change.attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(change.attributes.sq_psn, 0x123456U);
  EXPECT_EQ(change.attributes.max_rd_atomic, 1);
  EXPECT_EQ(change.attributes.timeout, kAckTimeout);
  EXPECT_EQ(change.attributes.retry_cnt, kRetries);
  EXPECT_EQ(change.attributes.rnr_retry, 7);
}

TEST(QueuePairAttributes, ErrorIsAStateAlone) {
  EXPECT_EQ(to_error().mask, IBV_QP_STATE);
  EXPECT_EQ(to_error().attributes.qp_state, IBV_QPS_ERR);
}

TEST(QueuePairAttributes, ThePathCarriesWhatBothPortsCarry) {
  EXPECT_EQ(path_mtu(4096, 4096), IBV_MTU_4096);
  EXPECT_EQ(path_mtu(4096, 2048), IBV_MTU_2048);
  EXPECT_EQ(path_mtu(512, 4096), IBV_MTU_512);
  EXPECT_EQ(path_mtu(1500, 9000), IBV_MTU_1024) << "rounded down";
  EXPECT_EQ(path_mtu(256, 256), IBV_MTU_256);
  for (const auto& [own, peer] : {std::pair(0U, 4096U), {4096U, 0U}, {255U, 255U}}) {
    const auto refused = [own = own, peer = peer] { return path_mtu(own, peer); };
    EXPECT_NE(error_of(hcclInternalError, refused), "") << own << ' ' << peer;
  }
}

using Phase = QueuePairState::Phase;

constexpr std::array kPhases{Phase::reset, Phase::initialized, Phase::ready_to_receive,
                             Phase::ready_to_send, Phase::error};

TEST(QueuePairState, TheOrderIsTheOnlyOne) {
  QueuePairState state;
  EXPECT_EQ(state.phase(), Phase::reset);
  for (const Phase next : {Phase::initialized, Phase::ready_to_receive, Phase::ready_to_send}) {
    state.advance(next);
    EXPECT_EQ(state.phase(), next);
  }
}

TEST(QueuePairState, StepsOutOfOrderAreRefused) {
  for (std::size_t from = 0; from < kPhases.size(); ++from) {
    for (std::size_t to = 0; to < kPhases.size(); ++to) {
      QueuePairState state;
      for (std::size_t step = 1; step <= from; ++step) state.advance(kPhases.at(step));
      const bool allowed = kPhases.at(to) == Phase::error || (to == from + 1 && to < 4);
      const std::string error = error_of(hcclInternalError, [&] { state.advance(kPhases.at(to)); });
      EXPECT_EQ(error.empty(), allowed) << from << " to " << to << ": " << error;
      EXPECT_EQ(state.phase(), kPhases.at(allowed ? to : from));
    }
  }
  QueuePairState failed;
  failed.advance(Phase::error);
  EXPECT_EQ(error_of(hcclInternalError, [&] { failed.advance(Phase::ready_to_send); }),
            "a queue pair in state 'error' cannot become 'ready to send'; report this");
}

}  // namespace
}  // namespace hccl::verbs
