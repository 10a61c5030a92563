// SPDX-License-Identifier: Apache-2.0
// Tests a queue pair's states: the attributes that each transition sets, and how the pair ends.

#include "base/error.h"
#include "base/file_descriptor.h"
#include "connected_pairs.h"
#include "samples.h"
#include "thrown.h"
#include "verbs/queue_pair_attributes.h"
#include "verbs/verbs_errors.h"

#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace hccl::verbs {
namespace {

// Tests the attributes that each transition sets. They must be exactly those that ibv_modify_qp(3)
// requires for a reliable connection.

using hccl::test::error_of;

QueuePairParameters pair_parameters() {
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

TEST(QueuePairAttributes, InitSetsPort) {
  const QueuePairChange change = to_initialized(pair_parameters());
  EXPECT_EQ(change.mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(change.attributes.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(change.attributes.port_num, 2);
  EXPECT_EQ(change.attributes.pkey_index, 0);
  EXPECT_EQ(static_cast<int>(change.attributes.qp_access_flags), IBV_ACCESS_REMOTE_WRITE);
}

TEST(QueuePairAttributes, ReadyToReceiveSetsPeer) {
  const QueuePairChange change = to_ready_to_receive(pair_parameters());
  EXPECT_EQ(change.mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  const ibv_qp_attr& attributes = change.attributes;
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTR);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_1024) << "the smaller MTU";
  EXPECT_EQ(attributes.dest_qp_num, 0x00abcdU);
  EXPECT_EQ(attributes.rq_psn, 0x654321U);
  EXPECT_EQ(attributes.max_dest_rd_atomic, 1);
  EXPECT_EQ(attributes.min_rnr_timer, 12);
  EXPECT_EQ(attributes.ah_attr.is_global, 1);
  EXPECT_EQ(attributes.ah_attr.port_num, 2);
  EXPECT_EQ(attributes.ah_attr.grh.sgid_index, 3);
  EXPECT_GE(attributes.ah_attr.grh.hop_limit, 64) << "packets may cross routers";
  EXPECT_EQ(attributes.ah_attr.grh.traffic_class, 104);
  const GidBytes peer = pair_parameters().peer_gid;
  EXPECT_TRUE(std::equal(peer.begin(), peer.end(), attributes.ah_attr.grh.dgid.raw));
}

TEST(QueuePairAttributes, ReadyToSendSetsRetries) {
  const QueuePairChange change = to_ready_to_send(pair_parameters());
  EXPECT_EQ(change.mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT);
  EXPECT_EQ(change.attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(change.attributes.sq_psn, 0x123456U);
  EXPECT_EQ(change.attributes.max_rd_atomic, 1);
  EXPECT_EQ(change.attributes.timeout, kAckTimeout);
  EXPECT_EQ(change.attributes.retry_cnt, kRetries);
  EXPECT_EQ(change.attributes.rnr_retry, 7);
}

TEST(QueuePairAttributes, ErrorSetsOnlyState) {
  EXPECT_EQ(to_error().mask, IBV_QP_STATE);
  EXPECT_EQ(to_error().attributes.qp_state, IBV_QPS_ERR);
}

TEST(QueuePairAttributes, PathMtuIsSmallerOfBothPorts) {
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

TEST(QueuePairState, AdvancesInOrder) {
  QueuePairState state;
  EXPECT_EQ(state.phase(), Phase::reset);
  for (const Phase next : {Phase::initialized, Phase::ready_to_receive, Phase::ready_to_send}) {
    state.advance(next);
    EXPECT_EQ(state.phase(), next);
  }
}

TEST(QueuePairState, RefusesStepsOutOfOrder) {
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

// Tests how a queue pair ends: by a failure, by cut(), or by drain().

class EndingPairs : public test::ConnectedPairs {
 protected:
  void SetUp() override {
    test::ConnectedPairs::SetUp();
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    socket_ = FileDescriptor(ends[0]);
    peers_socket_ = FileDescriptor(ends[1]);
  }
  void drain(Deadline deadline = Deadline::never()) { near().drain(deadline, socket_.get()); }

  FileDescriptor socket_;
  FileDescriptor peers_socket_;
};

TEST_F(EndingPairs, ReportEveryErrorStatus) {
  for (int number = 1; number < 32; ++number) {
    const auto status = static_cast<ibv_wc_status>(number);
    start(kDepths);
    post_immediate(1);
    post_immediate(2);
    wire_.fail(near().number(), status, 129);
    EXPECT_TRUE(near().poll().empty());
    EXPECT_EQ(near().failure().text, describe_completion(status, 129, test::ends_between(0, 3)));
    EXPECT_EQ(near().failure().peer_lost, severity_of(status) == Severity::peer_lost) << number;
    EXPECT_TRUE(near().poll().empty()) << "the failure is final";
  }
}

TEST_F(EndingPairs, DeliverMessagesThatPrecedeFailure) {
  post_immediate(7);
  far().write({}, 0, {}, 8);
  wire_.deliver(far().number());
  wire_.fail(near().number(), IBV_WC_RETRY_EXC_ERR);
  const auto received = near().poll();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received.front(), 8U);
  EXPECT_TRUE(near().failure().peer_lost);
}

TEST_F(EndingPairs, KeepFirstFailure) {
  write(1000, 1);
  write(1000, 2);
  wire_.fail(near().number(), IBV_WC_REM_ACCESS_ERR, 3);
  static_cast<void>(receive_all(near()));
  near().cut();
  wire_.faults.poll = true;
  EXPECT_TRUE(near().poll().empty());
  EXPECT_EQ(near().failure().text,
            describe_completion(IBV_WC_REM_ACCESS_ERR, 3, test::ends_between(0, 3)));
}

TEST_F(EndingPairs, UnreadableCompletionQueueIsOwnFailure) {
  wire_.faults.poll = true;
  EXPECT_TRUE(near().poll().empty());
  EXPECT_EQ(near().failure().text,
            "the completion queue of fake0 cannot be read; see the kernel's log");
  EXPECT_FALSE(near().failure().peer_lost);
}

TEST_F(EndingPairs, ArmReportsNotifyFailure) {
  wire_.faults.notify = true;
  EXPECT_FALSE(near().arm());
  wire_.faults.notify = false;
  EXPECT_TRUE(near().arm());
}

TEST_F(EndingPairs, CutStopsTrafficBothWays) {
  write(1000, 1);
  far().write(std::span(far_->memory).first(1000), far_->registration.local_key(), near_->target(),
              2);
  near().cut();
  EXPECT_EQ(wire_.state(near().number()), IBV_QPS_ERR);
  far_->memory.assign(far_->memory.size(), std::byte{0x11});
  wire_.run();
  EXPECT_TRUE(receive_all(far()).empty());
  EXPECT_EQ(near_->memory, std::vector<std::byte>(4096, std::byte{0xA5}));
  EXPECT_EQ(far_->memory, std::vector<std::byte>(4096, std::byte{0x11}));
  EXPECT_TRUE(near().failure().peer_lost);
  EXPECT_EQ(near().failure().text, "this rank aborted its queue pair because a call failed");
  EXPECT_TRUE(near().poll().empty());
  EXPECT_EQ(near().failure().text, "this rank aborted its queue pair because a call failed");
  near().cut();
  // The far end detects the cut when its retries are exhausted.
  wire_.fail(far().number(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(far().poll().empty());
  EXPECT_TRUE(far().failure().peer_lost);
}

TEST_F(EndingPairs, DrainEndsWhenAllWritesComplete) {
  for (std::uint32_t i = 0; i < 20; ++i) post_immediate(i);
  std::atomic<bool> over{false};
  std::thread network([&] {
    while (!over) {
      wire_.step();
      std::this_thread::yield();
    }
  });
  drain();
  over = true;
  network.join();
  EXPECT_EQ(near().free_requests(), kDepths.requests);
  EXPECT_TRUE(near().failure().text.empty());
  EXPECT_EQ(receive_all(far()).size(), 20U);
}

TEST_F(EndingPairs, DrainReturnsAtOnceWhenIdle) {
  wire_.prompt = true;
  post_immediate(1);
  drain();
  EXPECT_EQ(receive_all(far()).size(), 1U) << "the peer must not see the write that drain() posts";
}

TEST_F(EndingPairs, DrainTimesOutOnSilentPeer) {
  post_immediate(1);
  drain(Deadline::after(std::chrono::milliseconds(50)));
  EXPECT_LT(near().completed(), 2U);
  EXPECT_TRUE(near().failure().text.empty());
}

TEST_F(EndingPairs, DrainEndsWhenPeerHangsUp) {
  post_immediate(1);
  peers_socket_.reset();
  drain();
  EXPECT_LT(near().completed(), 2U);
}

TEST_F(EndingPairs, DrainEndsWhenPairFails) {
  post_immediate(1);
  std::thread network([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    wire_.fail(near().number(), IBV_WC_RETRY_EXC_ERR);
  });
  drain();
  network.join();
  EXPECT_TRUE(near().failure().peer_lost);
  drain();  // must return at once
}

TEST_F(EndingPairs, DrainReturnsWhenPostingOrNotifyingFails) {
  post_immediate(1);
  wire_.faults.post_send = EINVAL;
  drain();
  wire_.faults.post_send = 0;
  wire_.faults.notify = true;
  drain();
  wire_.faults.notify = false;
  start(kDepths);
  while (near().free_requests() > 0) post_immediate(0);
  drain();
}

}  // namespace
}  // namespace hccl::verbs
