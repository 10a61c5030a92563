// SPDX-License-Identifier: Apache-2.0
// Tests a queue pair without faults: writes, immediates, completions and notifications.
#include "verbs/queue_pair.h"

#include "base/error.h"
#include "connected_pairs.h"
#include "thrown.h"

#include <cerrno>
#include <numeric>

#include <poll.h>

namespace hccl::verbs {
namespace {

using hccl::test::error_of;

class QueuePairs : public test::ConnectedPairs {
 protected:
  [[nodiscard]] static bool has_notification(const QueuePair& pair) {
    pollfd descriptor{pair.descriptor(), POLLIN, 0};
    return ::poll(&descriptor, 1, 0) == 1;
  }
};

using Words = std::vector<std::uint32_t>;

TEST_F(QueuePairs, WriteDeliversBytesAndImmediate) {
  std::iota(reinterpret_cast<unsigned char*>(near_->memory.data()),
            reinterpret_cast<unsigned char*>(near_->memory.data()) + 1000, 0);
  const std::uint64_t number = write(1000, 0x12345678);
  EXPECT_EQ(receive_all(far()), Words{}) << "nothing has arrived";
  wire_.deliver(near().number());
  EXPECT_EQ(receive_all(far()), Words{0x12345678});
  EXPECT_TRUE(
      std::equal(near_->memory.begin(), near_->memory.begin() + 1000, far_->memory.begin()));
  EXPECT_EQ(far_->memory[1000], std::byte{0xA5});
  EXPECT_EQ(receive_all(near()), Words{});
  EXPECT_LT(near().completed(), number);
  wire_.run();
  EXPECT_EQ(receive_all(near()), Words{});
  EXPECT_EQ(near().completed(), number);
  EXPECT_TRUE(near().failure().text.empty());
}

TEST_F(QueuePairs, CarryWritesBothWays) {
  post_immediate(1);
  far().write({}, 0, {}, 2);
  far().write({}, 0, {}, 0xffffffff);
  wire_.run();
  EXPECT_EQ(receive_all(far()), Words{1});
  EXPECT_EQ(receive_all(near()), (Words{2, 0xffffffff}));
}

TEST_F(QueuePairs, CopyShortWritesWhenPosted) {
  EXPECT_TRUE(near().copies(0) && near().copies(128));
  EXPECT_FALSE(near().copies(129));
  const std::vector<std::byte> before(128, std::byte{1});
  std::copy(before.begin(), before.end(), near_->memory.begin());
  write(128, 1);
  near_->memory.assign(near_->memory.size(), std::byte{2});  // the write has copied its bytes
  wire_.run();
  EXPECT_TRUE(std::equal(before.begin(), before.end(), far_->memory.begin()));
}

TEST_F(QueuePairs, NeverExceedSendRequests) {
  EXPECT_EQ(near().free_requests(), kDepths.requests);
  for (std::uint32_t i = 0; i < kDepths.requests; ++i) {
    EXPECT_EQ(near().free_requests(), kDepths.requests - i);
    post_immediate(i);
  }
  EXPECT_EQ(near().free_requests(), 0U);
  EXPECT_EQ(wire_.outstanding_writes(near().number()), kDepths.requests);
  wire_.run();
  EXPECT_EQ(near().free_requests(), 0U) << "the completions have not been polled yet";
  EXPECT_EQ(receive_all(near()), Words{});
  EXPECT_EQ(near().free_requests(), kDepths.requests) << "the last write was signaled";
}

TEST_F(QueuePairs, SignalEnoughShortWrites) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_GT(near().free_requests(), 0U) << i;
    post_immediate(i);
    wire_.run();
    EXPECT_EQ(receive_all(far()), Words{i});
    EXPECT_EQ(receive_all(near()), Words{});
    EXPECT_GT(near().free_requests(), kDepths.requests - kDepths.requests / 8);
    EXPECT_EQ(near().free_requests(), kDepths.requests - wire_.outstanding_writes(near().number()));
  }
}

TEST_F(QueuePairs, DeliverImmediatesInOrder) {
  std::uint32_t posted = 0;
  std::uint32_t received = 0;
  for (int round = 0; round < 50; ++round) {
    while (near().free_requests() > 0 && posted - received < kDepths.arrivals)
      post_immediate(posted++);
    wire_.run();
    static_cast<void>(near().poll());
    for (const std::uint32_t word : far().poll()) EXPECT_EQ(word, received++);
  }
  wire_.run();
  for (const std::uint32_t word : receive_all(far())) EXPECT_EQ(word, received++);
  EXPECT_EQ(received, posted);
  EXPECT_GT(posted, 10 * kDepths.arrivals) << "receive requests must be reposted";
}

TEST_F(QueuePairs, NotifyOnceForEachArm) {
  post_immediate(1);
  wire_.run();
  EXPECT_FALSE(has_notification(far())) << "the pair is not armed";
  EXPECT_EQ(receive_all(far()), Words{1});
  EXPECT_TRUE(far().arm());
  EXPECT_TRUE(far().arm()) << "arming twice is harmless";
  EXPECT_FALSE(has_notification(far()));
  post_immediate(2);
  wire_.run();
  EXPECT_TRUE(has_notification(far()));
  far().drain_notifications();
  EXPECT_FALSE(has_notification(far()));
  post_immediate(3);
  wire_.run();
  EXPECT_FALSE(has_notification(far()))
      << "the queue pair notified although it was not armed again";
  EXPECT_TRUE(far().arm());
  post_immediate(4);
  wire_.run();
  EXPECT_TRUE(has_notification(far()));
  EXPECT_EQ(receive_all(far()), (Words{2, 3, 4}));
}

TEST_F(QueuePairs, EndDespitePendingNotifications) {
  EXPECT_TRUE(far().arm());
  post_immediate(1);
  wire_.run();
  EXPECT_TRUE(has_notification(far()));
}

TEST_F(QueuePairs, WorkWithoutInlineData) {
  wire_.faults.most_inline = 0;
  start(kDepths);
  EXPECT_TRUE(near().copies(0)) << "an immediate alone needs no memory";
  EXPECT_FALSE(near().copies(1));
  write(100, 1);
  post_immediate(2);
  wire_.run();
  EXPECT_EQ(receive_all(far()), (Words{1, 2}));
}

TEST_F(QueuePairs, StartAtRandomPacketNumbers) {
  std::vector<std::uint32_t> first;
  for (int i = 0; i < 20; ++i) {
    const QueuePair pair(near_->device, kDepths);
    first.push_back(pair.first_packet());
    EXPECT_LT(pair.first_packet(), 1U << 24);
  }
  std::ranges::sort(first);
  EXPECT_NE(first.front(), first.back()) << "late packets of an earlier pair must not match";
}

TEST_F(QueuePairs, ReportExhaustedDeviceResources) {
  const auto make = [&] { const QueuePair pair(near_->device, kDepths); };
  const std::string advice =
      "; use fewer communicators and streams, or raise ulimit -l and "
      "ulimit -n";
  const std::size_t before = wire_.objects();
  wire_.faults.no_channel = true;
  EXPECT_EQ(error_of(hcclSystemError, make),
            "cannot create a completion channel on fake0: Too many open files" + advice);
  wire_.faults.no_channel = false;
  wire_.faults.no_completion_queue = true;
  EXPECT_EQ(error_of(hcclSystemError, make),
            "cannot create a completion queue on fake0: Cannot allocate memory" + advice);
  wire_.faults.no_completion_queue = false;
  wire_.faults.no_queue_pair = true;
  EXPECT_EQ(error_of(hcclSystemError, make),
            "cannot create a queue pair on fake0: Invalid argument" + advice);
  wire_.faults.no_queue_pair = false;
  EXPECT_EQ(wire_.objects(), before) << "no object may leak";
  EXPECT_EQ(error_of(hcclSystemError, make), "");
}

TEST_F(QueuePairs, NameUnreachablePeer) {
  for (const auto& [state, step] : {std::pair(IBV_QPS_INIT, "usable"),
                                    {IBV_QPS_RTR, "ready to receive"},
                                    {IBV_QPS_RTS, "ready to send"}}) {
    QueuePair pair(near_->device, kDepths);
    wire_.faults.no_change_to = state;
    EXPECT_EQ(error_of(hcclSystemError,
                       [&] {
                         pair.connect(test::qp_info_of(*far_->device, far()),
                                      test::ends_between(0, 3));
                       }),
              std::string("rank 0 cannot make its queue pair to rank 3 (fake0 port 1, GID "
                          "10.77.0.1 to 10.77.0.2) ") +
                  step +
                  ": Network is unreachable; check HCCL_IB_GID_INDEX, and that the two addresses "
                  "can reach each other");
  }
}

TEST_F(QueuePairs, ReportFailedPosts) {
  wire_.faults.post_send = ENOMEM;
  EXPECT_EQ(error_of(hcclSystemError, [&] { post_immediate(1); }),
            "cannot post a request on fake0: Cannot allocate memory; see the kernel's log");
  wire_.faults.post_send = 0;
  for (std::uint32_t i = 0; i < 32; ++i)
    post_immediate(i);  // enough for the far end to post another batch of receives
  wire_.run();
  wire_.faults.post_receive = EINVAL;
  EXPECT_EQ(error_of(hcclSystemError, [&] { static_cast<void>(far().poll()); }),
            "cannot post a receive on fake0: Invalid argument; see the kernel's log");
}

}  // namespace
}  // namespace hccl::verbs
