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
  [[nodiscard]] static bool rings(const QueuePair& pair) {
    pollfd descriptor{pair.descriptor(), POLLIN, 0};
    return ::poll(&descriptor, 1, 0) == 1;
  }
};

using Words = std::vector<std::uint32_t>;

TEST_F(QueuePairs, AWriteBringsItsBytesAndItsImmediate) {
  std::iota(reinterpret_cast<unsigned char*>(near_->memory.data()),
            reinterpret_cast<unsigned char*>(near_->memory.data()) + 1000, 0);
  const std::uint64_t number = write(1000, 0x12345678);
  EXPECT_EQ(hear(far()), Words{}) << "nothing has arrived";
  wire_.deliver(near().number());
  EXPECT_EQ(hear(far()), Words{0x12345678});
  EXPECT_TRUE(
      std::equal(near_->memory.begin(), near_->memory.begin() + 1000, far_->memory.begin()));
  EXPECT_EQ(far_->memory[1000], std::byte{0xA5});
  EXPECT_EQ(hear(near()), Words{});
  EXPECT_LT(near().completed(), number);
  wire_.run();
  EXPECT_EQ(hear(near()), Words{});
  EXPECT_EQ(near().completed(), number);
  EXPECT_TRUE(near().failure().text.empty());
}

TEST_F(QueuePairs, BothWaysAtOnce) {
  say(1);
  far().write({}, 0, {}, 2);
  far().write({}, 0, {}, 0xffffffff);
  wire_.run();
  EXPECT_EQ(hear(far()), Words{1});
  EXPECT_EQ(hear(near()), (Words{2, 0xffffffff}));
}

TEST_F(QueuePairs, ShortWritesAreCopiedAtOnce) {
  EXPECT_TRUE(near().copies(0) && near().copies(128));
  EXPECT_FALSE(near().copies(129));
  const std::vector<std::byte> before(128, std::byte{1});
  std::copy(before.begin(), before.end(), near_->memory.begin());
  write(128, 1);
  near_->memory.assign(near_->memory.size(), std::byte{2});  // the write has copied its bytes
  wire_.run();
  EXPECT_TRUE(std::equal(before.begin(), before.end(), far_->memory.begin()));
}

TEST_F(QueuePairs, PlacesForWritesAreNeverExceeded) {
  EXPECT_EQ(near().free_writes(), kDepths.writes);
  for (std::uint32_t i = 0; i < kDepths.writes; ++i) {
    EXPECT_EQ(near().free_writes(), kDepths.writes - i);
    say(i);
  }
  EXPECT_EQ(near().free_writes(), 0U);
  EXPECT_EQ(wire_.places_in_use(near().number()), kDepths.writes);
  wire_.run();
  EXPECT_EQ(near().free_writes(), 0U) << "it has not looked yet";
  EXPECT_EQ(hear(near()), Words{});
  EXPECT_EQ(near().free_writes(), kDepths.writes) << "the last of them all was told";
}

TEST_F(QueuePairs, EnoughCompletionsAreToldForShortWrites) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_GT(near().free_writes(), 0U) << i;
    say(i);
    wire_.run();
    EXPECT_EQ(hear(far()), Words{i});
    EXPECT_EQ(hear(near()), Words{});
    EXPECT_GT(near().free_writes(), kDepths.writes - kDepths.writes / 8);
    EXPECT_EQ(near().free_writes(), kDepths.writes - wire_.places_in_use(near().number()));
  }
}

TEST_F(QueuePairs, ImmediatesKeepTheirOrderInWhateverPieces) {
  std::uint32_t said = 0;
  std::uint32_t received = 0;
  for (int round = 0; round < 50; ++round) {
    while (near().free_writes() > 0 && said - received < kDepths.arrivals) say(said++);
    wire_.run();
    static_cast<void>(near().poll());
    for (const std::uint32_t word : far().poll()) EXPECT_EQ(word, received++);
  }
  wire_.run();
  for (const std::uint32_t word : hear(far())) EXPECT_EQ(word, received++);
  EXPECT_EQ(received, said);
  EXPECT_GT(said, 10 * kDepths.arrivals) << "requests are posted again";
}

TEST_F(QueuePairs, ARingCallsOnceForWhatComesAfterIt) {
  say(1);
  wire_.run();
  EXPECT_FALSE(rings(far())) << "nobody asked";
  EXPECT_EQ(hear(far()), Words{1});
  EXPECT_TRUE(far().arm());
  EXPECT_TRUE(far().arm()) << "again";
  EXPECT_FALSE(rings(far()));
  say(2);
  wire_.run();
  EXPECT_TRUE(rings(far()));
  far().drain_notifications();
  EXPECT_FALSE(rings(far()));
  say(3);
  wire_.run();
  EXPECT_FALSE(rings(far())) << "it is not armed any more";
  EXPECT_TRUE(far().arm());
  say(4);
  wire_.run();
  EXPECT_TRUE(rings(far()));
  EXPECT_EQ(hear(far()), (Words{2, 3, 4}));
}

TEST_F(QueuePairs, RingsThatNobodyTookDoNotKeepThemFromEnding) {
  EXPECT_TRUE(far().arm());
  say(1);
  wire_.run();
  EXPECT_TRUE(rings(far()));
}

TEST_F(QueuePairs, SomeDevicesCopyNothing) {
  wire_.faults.most_inline = 0;
  start(kDepths);
  EXPECT_TRUE(near().copies(0)) << "an immediate alone needs no memory";
  EXPECT_FALSE(near().copies(1));
  write(100, 1);
  say(2);
  wire_.run();
  EXPECT_EQ(hear(far()), (Words{1, 2}));
}

TEST_F(QueuePairs, PacketsAreNumberedFromAnywhere) {
  std::vector<std::uint32_t> first;
  for (int i = 0; i < 20; ++i) {
    const QueuePair pair(near_->device, kDepths);
    first.push_back(pair.first_packet());
    EXPECT_LT(pair.first_packet(), 1U << 24);
  }
  std::ranges::sort(first);
  EXPECT_NE(first.front(), first.back()) << "a late packet of an earlier pair is none of ours";
}

TEST_F(QueuePairs, WhatTheDeviceHasNoRoomForIsSaid) {
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
  EXPECT_EQ(wire_.objects(), before) << "nothing stays";
  EXPECT_EQ(error_of(hcclSystemError, make), "");
}

TEST_F(QueuePairs, APeerThatCannotBeAddressedIsNamed) {
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
                  ": Network is unreachable; see that the two addresses reach each other, and "
                  "HCCL_IB_GID_INDEX");
  }
}

TEST_F(QueuePairs, WhatCannotBePostedIsSaid) {
  wire_.faults.post_send = ENOMEM;
  EXPECT_EQ(error_of(hcclSystemError, [&] { say(1); }),
            "cannot post a write on fake0: Cannot allocate memory; see the kernel's log");
  wire_.faults.post_send = 0;
  for (std::uint32_t i = 0; i < 32; ++i) say(i);  // enough to post receives in batches again
  wire_.run();
  wire_.faults.post_receive = EINVAL;
  EXPECT_EQ(error_of(hcclSystemError, [&] { static_cast<void>(far().poll()); }),
            "cannot post a receive on fake0: Invalid argument; see the kernel's log");
}

}  // namespace
}  // namespace hccl::verbs
