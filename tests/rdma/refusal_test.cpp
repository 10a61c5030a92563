// SPDX-License-Identifier: Apache-2.0
// Settings and limits with which RoCE cannot work: creating the communicator says what to change.
#include "rdma_test.h"

#include <cstdio>

namespace hccl::test {
namespace {

class RdmaRefusals : public OnRdmaHosts {
 protected:
  // Returns the error of creating a communicator with two ranks on two hosts, after
  // `prepare(rank)`.
  static std::vector<std::string> texts_of(const std::function<void(int)>& prepare) {
    const Layout layout{"ab"};
    const auto outcomes = run_ranks(
        layout.ranks(),
        [&](World& world) {
          move_to(layout.host_of(world.rank));
          prepare(world.rank);
          Session session(world);
          hcclUniqueId id{};
          hcclComm_t communicator = nullptr;
          const hcclResult_t result = hcclCommInitRank(&communicator, world.size, id, world.rank);
          require(result != hcclSuccess, "the communicator is refused");
          world.report(last_hccl_message());
          session.finish();
        },
        on_hosts_of(layout));
    EXPECT_EQ(failures(outcomes), "");
    std::vector<std::string> texts;
    for (const RankOutcome& outcome : outcomes) {
      texts.push_back(outcome.reports.empty() ? "nothing" : outcome.reports.front());
      std::printf("%s\n", texts.back().c_str());
    }
    return texts;
  }
};

TEST_F(RdmaRefusals, AGidIndexThatNoPortHasNamesThoseThatDo) {
  const auto texts = texts_of([](int) { setenv("HCCL_IB_GID_INDEX", "7", 1); });
  for (const std::string& text : texts) {
    EXPECT_TRUE(contains(text, "HCCL_IB_GID_INDEX=7")) << text;
    EXPECT_TRUE(contains(text, "rxe")) << text;
    EXPECT_TRUE(contains(text, "set it to 1 or 2")) << text;
  }
}

TEST_F(RdmaRefusals, AGidIndexOfOneRankIsToldToTheOther) {
  const auto texts = texts_of([](int rank) {
    if (rank == 1) setenv("HCCL_IB_GID_INDEX", "7", 1);
  });
  EXPECT_TRUE(names_rank(texts.at(0), 1)) << texts.at(0);
  for (const std::string& text : texts) {
    EXPECT_TRUE(contains(text, "HCCL_IB_GID_INDEX=7")) << text;
    EXPECT_TRUE(contains(text, "rxe1")) << text;
    EXPECT_TRUE(contains(text, "set it to 1 or 2")) << text;
  }
}

TEST_F(RdmaRefusals, ALimitOfLockedMemoryIsNamed) {
  const auto texts = texts_of([](int) { limit_locked_memory(64 << 10); });
  for (const std::string& text : texts) {
    EXPECT_TRUE(contains(text, "the limit of locked memory is 64 KiB")) << text;
    EXPECT_TRUE(contains(text, "ulimit -l")) << text;
  }
}

}  // namespace
}  // namespace hccl::test
