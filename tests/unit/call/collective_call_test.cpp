// SPDX-License-Identifier: Apache-2.0
// Tests the table of collectives, the sizes and texts of calls, and which calls are in place.
#include "call/collective_call.h"

#include "call/point_to_point.h"

#include <gtest/gtest.h>

namespace hccl {
namespace {

CollectiveCall floats(Collective collective, std::uint64_t count) {
  return {.collective = collective,
          .type = hcclFloat32,
          .operation = static_cast<std::uint8_t>(traits(collective).reduces ? hcclSum : hcclOpNone),
          .root = traits(collective).has_root() ? 1 : -1,
          .count = count};
}

TEST(Traits, FollowOrderOfCollectives) {
  EXPECT_STREQ(name_of(Collective::barrier), "barrier");
  EXPECT_STREQ(name_of(Collective::reduce_scatter), "reduce_scatter");
  EXPECT_STREQ(name_of(Collective::point_to_point), "point_to_point");
  for (const int number : {0, 9, 255})
    EXPECT_STREQ(name_of(static_cast<Collective>(number)), "unknown collective");
}

TEST(CollectiveCall, SizesFollowBlocksOfBuffers) {
  EXPECT_EQ(send_bytes(floats(Collective::all_gather, 5), 4), 20U);
  EXPECT_EQ(recv_bytes(floats(Collective::all_gather, 5), 4), 80U);
  EXPECT_EQ(send_bytes(floats(Collective::reduce_scatter, 5), 4), 80U);
  EXPECT_EQ(recv_bytes(floats(Collective::reduce_scatter, 5), 4), 20U);
  EXPECT_EQ(chunk_bytes(floats(Collective::all_to_all, 8), 4), 8U);
  EXPECT_EQ(send_bytes(floats(Collective::all_to_all, 8), 4), 32U);
  EXPECT_EQ(send_bytes(floats(Collective::barrier, 8), 4), 0U);
}

TEST(CollectiveCall, OnlyRootSendsBroadcastAndReceivesReduce) {
  const CollectiveCall broadcast = floats(Collective::broadcast, 1);
  EXPECT_TRUE(sends(broadcast, 1) && !sends(broadcast, 0) && receives(broadcast, 0));
  EXPECT_EQ(senders(broadcast, 4), 1);
  const CollectiveCall reduce = floats(Collective::reduce, 1);
  EXPECT_TRUE(receives(reduce, 1) && !receives(reduce, 0) && sends(reduce, 0));
  EXPECT_EQ(receivers(reduce, 4), 1);
}

TEST(CollectiveCall, IsInPlaceIfSmallerBufferIsRanksBlockOfLarger) {
  CollectiveCall gather = floats(Collective::all_gather, 5);
  gather.recv = 1000;
  gather.send = 1040;
  EXPECT_TRUE(is_in_place(gather, 2, 4));
  EXPECT_FALSE(is_in_place(gather, 1, 4));
  CollectiveCall scatter = floats(Collective::reduce_scatter, 5);
  scatter.send = 1000;
  scatter.recv = 1040;
  EXPECT_TRUE(is_in_place(scatter, 2, 4));
  EXPECT_FALSE(is_in_place(scatter, 0, 4));
  CollectiveCall exchange = floats(Collective::all_to_all, 8);
  exchange.send = exchange.recv = 1000;
  EXPECT_TRUE(is_in_place(exchange, 2, 4));
}

TEST(Descriptions, NameCallAndRelevantArguments) {
  EXPECT_EQ(describe(floats(Collective::all_reduce, 1025)), "all_reduce(1025, float, sum)");
  EXPECT_EQ(describe(floats(Collective::reduce, 2)), "reduce(2, float, sum, root 1)");
  EXPECT_EQ(describe(floats(Collective::barrier, 0)), "barrier()");
  PointToPoint message{
      .direction = Direction::receive, .type = hcclBfloat16, .peer = 5, .count = 3};
  EXPECT_EQ(describe(message), "recv(3, bfloat16) from rank 5");
}

}  // namespace
}  // namespace hccl
