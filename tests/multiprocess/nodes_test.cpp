// SPDX-License-Identifier: Apache-2.0
// Tests each collective's matrix of operations on several emulated nodes. The results must equal,
// bit for bit, those that the plan determines. The planner chooses the algorithm. Collectives that
// reduce also run with each algorithm that HCCL_ALGO can force, except for pairwise, which never
// reduces.
#include "matrix.h"
#include "rank_test.h"
#include "scalar_fold.h"

#include <cstdlib>
#include <ostream>

#include <gtest/gtest.h>
#include <hccl_emulation.h>

namespace hccl::test {
namespace {

struct LayoutCase {
  Collective collective = Collective::all_reduce;
  std::string layout;  // one letter per rank, which names its node
  std::string algorithm{};
  std::string transport{};
};

void PrintTo(const LayoutCase& value, std::ostream* out) {
  *out << name_of(value.collective) << " on " << value.layout << ' ' << value.algorithm << ' '
       << value.transport;
}

class OnNodes : public testing::TestWithParam<LayoutCase> {};

TEST_P(OnNodes, MatchThePlanBitwise) {
  const LayoutCase& of = GetParam();
  Nodes nodes;
  for (const char letter : of.layout) nodes.of_rank.emplace_back(1, letter);
  nodes.algorithm = of.algorithm;
  RankOptions options{
      .environment = {{"HCCL_SOCKET_IFNAME", "lo"}}, .comm_id = true, .seconds = 150};
  if (!of.algorithm.empty()) options.environment.emplace_back("HCCL_ALGO", of.algorithm);
  if (!of.transport.empty()) options.environment.emplace_back("HCCL_TRANSPORT", of.transport);
  const auto matrix = [&](World& world) {
    setenv("HCCL_NODE_ID", nodes.of_rank[static_cast<std::size_t>(world.rank)].c_str(), 1);
    run_matrix(world, of.collective, nodes);
  };
  EXPECT_EQ(failures(run_ranks(static_cast<int>(of.layout.size()), matrix, options)), "");
}

constexpr std::array kCollectives{Collective::all_reduce, Collective::broadcast,
                                  Collective::all_gather, Collective::reduce_scatter,
                                  Collective::reduce,     Collective::all_to_all};

// Returns these layouts: two nodes of four ranks, four of two, eight of one, nodes of two and one,
// and nodes of one, three and four with interleaved ranks.
std::vector<LayoutCase> layouts() {
  std::vector<LayoutCase> cases;
  for (const char* layout : {"aaaabbbb", "aabbccdd", "abcdefgh", "aab", "bacbccbc"}) {
    for (const Collective collective : kCollectives) cases.push_back({collective, layout});
  }
  return cases;
}

std::vector<LayoutCase> forced() {
  std::vector<LayoutCase> cases;
  for (const char* algorithm :
       {"ring", "tree", "halving_doubling", "direct", "one_shot", "chain", "hierarchical"}) {
    for (const Collective collective : kCollectives) {
      if (!traits(collective).reduces) continue;
      cases.push_back({collective, "aabb", algorithm});
    }
  }
  for (const char* transport : {"shm", "tcp"}) {
    for (const char* algorithm : {"ring", "tree"})
      cases.push_back({Collective::all_reduce, "aaaa", algorithm, transport});
  }
  return cases;
}

// Tests all-reduces so large that the planner uses pipelines and several channels.
class LargeMessage : public testing::TestWithParam<const char*> {};

TEST_P(LargeMessage, MatchesThePlanBitwise) {
  const Operation operation{
      .count = (3 << 20) / 4 + 1, .nodes = {"a", "a", "b", "b", "c", "c"}, .algorithm = GetParam()};
  RankOptions options{.comm_id = true, .seconds = 150};
  if (!operation.algorithm.empty()) options.environment = {{"HCCL_ALGO", operation.algorithm}};
  const auto move = [&](const World& world) {
    setenv("HCCL_NODE_ID", operation.nodes[static_cast<std::size_t>(world.rank)].c_str(), 1);
  };
  const auto reduce = [&](RANK_PARAMETERS) {
    for (const bool in_place : {false, true}) {
      Operation own = operation;
      own.in_place = in_place;
      OperationRun run(session, group, own);
      for (int repeat = 0; repeat < 3; ++repeat) {
        succeed(run.queue(stream));
        succeed(synStreamSynchronize(stream));
      }
      run.verify();
    }
  };
  EXPECT_EQ(failures(run_ranks(6, in_session(reduce, move), options)), "");
}

// Tests calls of several slices, in device memory, in host memory and in both.
class LongCall : public testing::TestWithParam<Collective> {};

TEST_P(LongCall, OnTwoLevelsMatchesThePlanBitwise) {
  const std::vector<std::string> nodes{"a", "a", "b", "b", "c", "c"};
  const std::size_t elements = sanitized() ? 300'006 : 900'006;  // sanitizers are slow
  // These two collectives take the number of elements per block.
  const bool of_block =
      GetParam() == Collective::all_gather || GetParam() == Collective::reduce_scatter;
  const std::size_t count = of_block ? elements / nodes.size() : elements;
  const auto move = [&](const World& world) {
    setenv("HCCL_NODE_ID", nodes[static_cast<std::size_t>(world.rank)].c_str(), 1);
  };
  const auto call = [&](RANK_PARAMETERS) {
    for (const Placement placement : {Placement::device, Placement::host, Placement::mixed}) {
      for (const bool in_place : {false, true}) {
        const Operation operation{.collective = GetParam(),
                                  .root = 3,
                                  .count = count,
                                  .in_place = in_place,
                                  .offset = 5,
                                  .seed = 7,
                                  .placement = placement,
                                  .nodes = nodes};
        run_and_verify(session, group, stream, operation);
      }
    }
  };
  EXPECT_EQ(failures(run_ranks(6, in_session(call, move), {.comm_id = true, .seconds = 150})), "");
}

// Each byte of a node's result must leave the node only once.
TEST(TwoLevels, SendEachByteOfANodeOnce) {
  constexpr std::uint64_t kBytes = (4 << 20) + 4;
  constexpr std::uint64_t kLocalRanks = 4;
  constexpr std::uint64_t kMostHeaders = 256;  // for at most four exchanges
  const auto move = [](const World& world) {
    setenv("HCCL_NODE_ID", world.rank < 4 ? "a" : "b", 1);
  };
  const auto reduce = [](RANK_PARAMETERS) {
    const DeviceMemory memory(session.device(), kBytes);
    succeed(hcclAllReduce(memory.pointer(), memory.pointer(), kBytes / 4, hcclFloat32, hcclSum,
                          group.handle, stream));
    succeed(synStreamSynchronize(stream));
    hcclEmulationTraffic_t traffic{};
    succeed(hcclEmulationTraffic(group.handle, -1, &traffic));
    require_equal(std::string(traffic.algorithm), std::string("two_level"), "algorithm");
    const std::uint64_t before = traffic.bytes_sent;
    succeed(hcclAllReduce(memory.pointer(), memory.pointer(), 1, hcclFloat32, hcclSum, group.handle,
                          stream));
    succeed(synStreamSynchronize(stream));
    hcclEmulationTraffic_t after{};
    succeed(hcclEmulationTraffic(group.handle, -1, &after));
    // The first rank of each node exchanges the results of a short call.
    require_equal(after.bytes_sent > before, world.rank % 4 == 0, "sends");
    require_equal(std::string(after.algorithm), std::string("two_level"), "algorithm");
    require(traffic.bytes_sent >= kBytes / kLocalRanks - 4, join("sent ", traffic.bytes_sent));
    require(traffic.bytes_sent <= kBytes / kLocalRanks + kMostHeaders,
            join("sent ", traffic.bytes_sent));
  };
  EXPECT_EQ(failures(run_ranks(8, in_session(reduce, move), {.comm_id = true})), "");
}

// An average between two nodes must be right even if the sum overflows the type.
TEST(LargeValues, AreAveragedBetweenNodesAsOnOne) {
  struct Pair {
    hcclDataType_t type;
    std::uint16_t values[2];
  };
  const auto move = [](const World& world) {
    setenv("HCCL_NODE_ID", world.rank == 0 ? "a" : "b", 1);
  };
  const auto average = [](RANK_PARAMETERS) {
    for (const Pair& pair :
         {Pair{hcclFloat16, {0x7BFF, 0x6F64}}, Pair{hcclFloat16, {0xFBFF, 0xFBFF}},
          Pair{hcclBfloat16, {0x7F7F, 0x7F7F}}}) {
      for (const std::size_t count : {1U, 1'000'001U}) {
        std::vector<std::uint16_t> values(count, pair.values[world.rank]);
        succeed(hcclAllReduce(values.data(), values.data(), count, pair.type, hcclAvg, group.handle,
                              stream));
        succeed(synStreamSynchronize(stream));
        const auto mean = static_cast<std::uint16_t>(fold(
            pair.type, hcclSum,
            {scaled(pair.type, pair.values[0], 0.5F), scaled(pair.type, pair.values[1], 0.5F)}));
        require(values == std::vector<std::uint16_t>(count, mean),
                join("an average is ", values[0]));
      }
    }
  };
  const RankOptions options{.comm_id = true};
  EXPECT_EQ(failures(run_ranks(2, in_session(average, move), options)), "");
}

INSTANTIATE_TEST_SUITE_P(Algorithms, LargeMessage,
                         testing::Values("", "ring", "tree", "halving_doubling", "direct"));
INSTANTIATE_TEST_SUITE_P(Collectives, LongCall, testing::ValuesIn(kCollectives),
                         [](const auto& of) { return std::string(name_of(of.param)); });
INSTANTIATE_TEST_SUITE_P(Layouts, OnNodes, testing::ValuesIn(layouts()));
INSTANTIATE_TEST_SUITE_P(Forced, OnNodes, testing::ValuesIn(forced()));

}  // namespace
}  // namespace hccl::test
