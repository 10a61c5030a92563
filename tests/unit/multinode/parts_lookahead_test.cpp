// SPDX-License-Identifier: Apache-2.0
#include "multinode/parts_lookahead.h"

#include <vector>

#include <gtest/gtest.h>

namespace hccl::multinode {
namespace {

CollectiveCall all_reduce_call(std::uint64_t count) {
  CollectiveCall call;
  call.collective = Collective::all_reduce;
  call.type = hcclFloat32;
  call.operation = hcclSum;
  call.count = count;
  return call;
}

// The calls that are queued on a stream.
class Queue final : public CallLookahead {
 public:
  explicit Queue(std::vector<CollectiveCall> calls) : calls_(std::move(calls)) {}

  // A barrier stands for other work: next() returns null for it and moves on.
  const CollectiveCall* next() override {
    if (next_ == calls_.size()) return nullptr;
    const CollectiveCall& call = calls_[next_++];
    return is_other_work(call) ? nullptr : &call;
  }
  bool has_next() const override { return next_ < calls_.size() && !is_other_work(calls_[next_]); }
  void append(const CollectiveCall& call) { calls_.push_back(call); }

 private:
  static bool is_other_work(const CollectiveCall& call) {
    return call.collective == Collective::barrier;
  }

  std::vector<CollectiveCall> calls_;
  std::size_t next_ = 0;
};

class PartsLookaheadTest : public testing::Test {
 protected:
  // Returns the collectives of up to `most` calls that `ahead` returns next.
  std::vector<Collective> seen(PartsLookahead& ahead, std::size_t most = 16) {
    std::vector<Collective> collectives;
    while (collectives.size() < most) {
      const CollectiveCall* const call = ahead.next();
      if (call == nullptr) break;
      collectives.push_back(call->collective);
    }
    return collectives;
  }

  using Collectives = std::vector<Collective>;
  const planner::Topology topology_{{"a", "a", "b", "b"}};
  const NodeLayout first_{topology_, 0};
  const NodeLayout second_{topology_, 1};
  const CollectiveCall running_ = all_reduce_call(2);
};

TEST_F(PartsLookaheadTest, ShowsThePartsOfTheQueuedCalls) {
  Queue queue({all_reduce_call(3), all_reduce_call(4)});
  const CallParts parts(second_, running_, 0);
  PartsLookahead ahead(queue, second_, parts, 0);
  EXPECT_EQ(seen(ahead),
            (Collectives{Collective::broadcast, Collective::reduce, Collective::broadcast,
                         Collective::reduce, Collective::broadcast}));
  ahead.move_to(2);  // the calls fetched before are seen again
  EXPECT_EQ(seen(ahead), (Collectives{Collective::reduce, Collective::broadcast, Collective::reduce,
                                      Collective::broadcast}));
}

TEST_F(PartsLookaheadTest, ShowsARankThatExchangesDataNothing) {
  Queue queue({all_reduce_call(3)});
  const CallParts parts(first_, running_, 0);
  PartsLookahead ahead(queue, first_, parts, 0);
  EXPECT_EQ(seen(ahead), Collectives{});
  EXPECT_EQ(seen(ahead), Collectives{});
  ahead.move_to(2);
  EXPECT_EQ(seen(ahead), Collectives{});
}

TEST_F(PartsLookaheadTest, EndsForGoodAtACallThatIsNotDivided) {
  CollectiveCall broadcast = all_reduce_call(3);
  broadcast.collective = Collective::broadcast;
  broadcast.root = 0;
  Queue queue({all_reduce_call(2), broadcast, all_reduce_call(4)});
  const CallParts parts(second_, running_, 0);
  PartsLookahead ahead(queue, second_, parts, 0);
  ahead.move_to(2);
  const Collectives expected{Collective::reduce, Collective::broadcast};
  EXPECT_EQ(seen(ahead), expected);
  ahead.move_to(2);
  EXPECT_EQ(seen(ahead), expected);
}

TEST_F(PartsLookaheadTest, EndsAtACallThatAllColumnsExchange) {
  Queue queue({all_reduce_call(1 << 20), all_reduce_call(4)});
  const CallParts parts(second_, running_, 0);
  PartsLookahead ahead(queue, second_, parts, 0);
  ahead.move_to(2);
  EXPECT_EQ(seen(ahead), Collectives{});
}

TEST_F(PartsLookaheadTest, DoesNotPassOverOtherWork) {
  CollectiveCall other = all_reduce_call(0);
  other.collective = Collective::barrier;
  Queue queue({other, all_reduce_call(3)});
  const CallParts parts(second_, running_, 0);
  PartsLookahead ahead(queue, second_, parts, 0);
  for (int time = 0; time < 2; ++time) {
    ahead.move_to(2);
    EXPECT_EQ(seen(ahead), Collectives{});
  }
}

TEST_F(PartsLookaheadTest, SeesCallsThatAreQueuedLater) {
  Queue queue({});
  const CallParts parts(second_, running_, 0);
  PartsLookahead ahead(queue, second_, parts, 0);
  ahead.move_to(2);
  EXPECT_EQ(seen(ahead), Collectives{});
  queue.append(all_reduce_call(3));
  EXPECT_EQ(seen(ahead, 1), Collectives{Collective::reduce});
}

TEST_F(PartsLookaheadTest, NumbersTheCalls) {
  Queue queue({all_reduce_call(3), all_reduce_call(4)});
  const CallParts parts(second_, running_, 5);
  PartsLookahead ahead(queue, second_, parts, 5);
  ahead.move_to(2);
  static_cast<void>(ahead.next());
  static_cast<void>(ahead.next());
  const CollectiveCall* const third = ahead.next();
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(third->whole_number, 7U);
  EXPECT_EQ(third->whole->count, 4U);
}

}  // namespace
}  // namespace hccl::multinode
