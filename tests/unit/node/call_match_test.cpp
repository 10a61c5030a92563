// SPDX-License-Identifier: Apache-2.0
// Calls that differ in any argument other than their buffers must not match.
#include "node/call_match.h"

#include "engine_ranks.h"

#include <memory>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

constexpr int kRanks = 4;

class CallMatch : public testing::Test {
 protected:
  CallMatch() { lane_->attach(); }

  // Posts the call as `rank`.
  void post(int rank, const CollectiveCall& call) {
    Slot& slot = lane_->slot(rank);
    slot.collective = static_cast<std::uint8_t>(call.collective);
    slot.type = call.type;
    slot.operation = call.operation;
    slot.root = call.root;
    slot.count = call.count;
    slot.number.store(lane_->number());
  }

  EngineRanks ranks_{kRanks};
  const std::unique_ptr<Lane> lane_ = ranks_.make_lane(0);
};

TEST_F(CallMatch, ComparesEverythingButBuffers) {
  const CollectiveCall call = all_reduce_call(100, 0x1000, 0x2000);
  for (int rank = 0; rank < kRanks; ++rank) post(rank, call);
  EXPECT_TRUE(calls_match(*lane_, all_reduce_call(100, 1, 2), kRanks));
  EXPECT_FALSE(calls_match(*lane_, all_reduce_call(101, 0x1000, 0x2000), kRanks));
  const auto with = [&](auto change) {
    CollectiveCall changed = call;
    change(changed);
    return changed;
  };
  for (const CollectiveCall& odd :
       {with([](CollectiveCall& c) { c.collective = Collective::reduce; }),
        with([](CollectiveCall& c) { c.type = hcclBfloat16; }),
        with([](CollectiveCall& c) { c.operation = hcclMax; }),
        with([](CollectiveCall& c) { c.root = 1; })}) {
    post(2, odd);
    EXPECT_FALSE(calls_match(*lane_, call, kRanks)) << describe(odd);
  }
}

TEST_F(CallMatch, NamesDeviatingRanksFirst) {
  const CollectiveCall usual = all_reduce_call(100, 0, 0);
  for (int rank = 0; rank < kRanks; ++rank) post(rank, usual);
  post(1, all_reduce_call(7, 0, 0));
  const CollectiveOperation op(*lane_, usual, 0, kRanks, lane_->number());
  EXPECT_EQ(mismatch_text(ranks_.segment(0), op),
            "op 0 of stream 0: rank 1 all_reduce(7, float, sum) but ranks 0,2,3 all_reduce(100, "
            "float, sum); every rank must make the same calls in the same order");
}

// If a call is divided, each part must be posted, compared and named like the whole call.
TEST_F(CallMatch, ComparesTheWholeCallOfAPart) {
  const CollectiveCall whole = all_reduce_call(100, 0, 0);
  CollectiveCall part = all_reduce_call(25, 0, 0);
  part.collective = Collective::reduce_scatter;
  part.whole = &whole;
  part.whole_number = 17;
  for (int rank = 0; rank < kRanks; ++rank) post(rank, whole);
  EXPECT_TRUE(calls_match(*lane_, part, kRanks));
  post(3, part);
  EXPECT_FALSE(calls_match(*lane_, part, kRanks));
  const CollectiveOperation op(*lane_, part, 0, kRanks, lane_->number());
  EXPECT_EQ(mismatch_text(ranks_.segment(0), op),
            "op 17 of stream 0: rank 3 reduce_scatter(25, float, sum) but ranks 0-2 "
            "all_reduce(100, float, sum); every rank must make the same calls in the same order");
}

TEST_F(CallMatch, FindsCallsOfRanksThatHavePosted) {
  const ControlBlock control = ranks_.control();
  EXPECT_EQ(find_slot(control, 0, 0, 1), nullptr);
  EXPECT_EQ(posted_calls_text(control, 0, 0), "");
  post(0, all_reduce_call(7, 0, 0));
  post(1, all_reduce_call(7, 0, 0));
  EXPECT_NE(find_slot(control, 0, 0, 1), nullptr);
  EXPECT_EQ(find_slot(control, 0, 1, 1), nullptr) << "another operation";
  EXPECT_EQ(find_slot(control, 1, 0, 1), nullptr) << "another lane";
  EXPECT_EQ(posted_calls_text(control, 0, 0), "ranks 0,1 all_reduce(7, float, sum)");
}

}  // namespace
}  // namespace hccl::node
