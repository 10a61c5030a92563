// SPDX-License-Identifier: Apache-2.0
// Tests networks that lose packets or have a small MTU, and the removal of a device. Calls must
// succeed or report the reason.
#include "lost_hosts.h"
#include "matrix.h"
#include "rank_test.h"
#include "rdma_test.h"

#include <chrono>
#include <cstdio>
#include <thread>

namespace hccl::test {
namespace {

constexpr std::uint64_t kFrames = 1500;
constexpr std::uint64_t kMtuOfFrames = 1024;  // RoCE allows only powers of two

class RdmaNetwork : public OnRdmaHosts {
 protected:
  // Runs small and large collectives of two ranks on two hosts and checks the results.
  static std::vector<RankOutcome> run(std::uint64_t mtu = 4096) {
    const Layout layout{"ab"};
    std::vector<Operation> operations;
    for (const Collective collective : {Collective::all_reduce, Collective::all_to_all}) {
      for (const std::size_t count : {2U, 1000U, 600'000U}) {
        const Operation operation{
            .collective = collective, .count = count, .seed = test_seed(), .nodes = {"a", "b"}};
        operations.push_back(operation);
      }
    }
    return run_ranks(
        layout.ranks(),
        [&](World& world) {
          move_to(layout.host_of(world.rank));
          const VerbsProof proof(world, layout);
          run_operations(world, operations, [&](const Group& group) { proof.report(group, mtu); });
        },
        on_hosts_of(layout));
  }

  const RdmaHosts hosts_;
};

TEST_F(RdmaNetwork, LostPacketsAreRetransmitted) {
  SCOPED_TRACE(random_seed_text());
  hosts_.lose(1, "1%");
  const auto outcomes = run();
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_GT(VerbsProof::bytes_moved(outcomes), 0U);
  const std::uint64_t lost = hosts_.packets_lost(1);
  EXPECT_GT(lost, 0U);
  std::printf("%llu packets lost\n", static_cast<unsigned long long>(lost));
}

TEST_F(RdmaNetwork, TheSmallerMtuIsUsed) {
  SCOPED_TRACE(random_seed_text());
  hosts_.limit_frames(1, kFrames);
  const auto outcomes = run(kMtuOfFrames);
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_GT(VerbsProof::bytes_moved(outcomes), 0U);
}

TEST_F(RdmaNetwork, ASwitchWithASmallerMtuIsNamedAsALikelyCause) {
  for (const int host : {0, 1}) hosts_.limit_frames_at_switch(host, kFrames);
  const Layout layout{"ab"};
  const auto move = [&](const World& world) { move_to(layout.host_of(world.rank)); };
  const auto reduce = [](RANK_PARAMETERS) {
    constexpr std::size_t kCount = 1 << 20;
    const DeviceMemory memory(session.device(), kCount * 4);
    void* const data = memory.pointer();
    succeed(hcclAllReduce(data, data, kCount, hcclFloat32, hcclSum, group.handle, stream));
    require(synStreamSynchronize(stream) != synSuccess, "large packets do not get through");
    world.report(async_message(group.handle));
  };
  const auto outcomes = run_ranks(layout.ranks(), in_session(reduce, move), on_hosts_of(layout));
  EXPECT_EQ(failures(outcomes), "");
  for (const int rank : {0, 1}) {
    const RankOutcome& outcome = outcomes.at(static_cast<std::size_t>(rank));
    EXPECT_EQ(blames_none_of(outcome, {1 - rank}), "");
    for (const std::string& text : outcome.reports) {
      EXPECT_TRUE(contains(text, "MTU")) << text;
      std::printf("rank %d: %s\n", rank, text.c_str());
    }
  }
}

// A deleted device must stay usable until hcclCommDestroy has closed it.
TEST_F(RdmaNetwork, ADeletedDeviceStaysUsableUntilDestroy) {
  const Layout layout{"ab"};
  RankOptions options = on_hosts_of(layout);
  options.environment.emplace_back("HCCL_TIMEOUT", "30");
  const auto outcomes = run_ranks(
      layout.ranks(),
      [&](World& world) {
        move_to(layout.host_of(world.rank));
        Session session(world);
        const Group group = session.join_all();
        synStreamHandle stream = session.make_stream();
        for (int round = 0; round < 20; ++round) {
          if (round == 10) {
            world.board->barrier(0, world.size);
            if (world.rank == 1) hosts_.delete_device(1);
            world.board->barrier(0, world.size);
          }
          const Operation operation{.count = 10'000, .nodes = {"a", "b"}};
          run_and_verify(session, group, stream, operation);
        }
        require(world.rank == 0 || RdmaHosts::has_device(1), "the device waits for this process");
        session.finish();
        for (int i = 0; world.rank == 1 && i < 100 && RdmaHosts::has_device(1); ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        require(world.rank == 0 || !RdmaHosts::has_device(1), "closed by hcclCommDestroy");
      },
      options);
  EXPECT_EQ(failures(outcomes), "");
}

}  // namespace
}  // namespace hccl::test
