// SPDX-License-Identifier: Apache-2.0
// Interprets the parts of random calls on random sets of nodes, and compares the results with the
// collectives' definitions.
#include "multinode/call_parts.h"

#include "elements.h"
#include "two_level.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::multinode {
namespace {

using planner::Topology;
using test::Words;

// Each character names one rank's node.
Topology topology_of(const std::string& nodes) {
  std::vector<std::string> identities;
  for (const char node : nodes) identities.emplace_back(1, node);
  return Topology(identities);
}

CollectiveCall call_of(Collective collective, std::uint64_t count, int root = -1,
                       hcclRedOp_t operation = hcclSum) {
  CollectiveCall call;
  call.collective = collective;
  call.type = hcclInt32;
  call.operation = static_cast<std::uint8_t>(call.traits().reduces ? operation : hcclOpNone);
  call.root = call.traits().has_root() ? root : -1;
  call.count = count;
  return call;
}

Words random_inputs(const CollectiveCall& call, int ranks, std::mt19937& random) {
  Words inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::uint64_t> words(send_bytes(call, ranks) / 4);
    for (std::uint64_t& word : words) word = random();
    inputs.push_back(std::move(words));
  }
  return inputs;
}

// Returns the output of `rank` by the collective's definition. Integer sums do not depend on the
// order of addition.
std::vector<std::uint64_t> expected(const CollectiveCall& call, const Words& inputs, int rank) {
  const int ranks = static_cast<int>(inputs.size());
  const std::size_t block = chunk_bytes(call, ranks) / 4;
  const std::size_t own = block * static_cast<std::size_t>(rank);
  std::vector<std::uint64_t> output;
  if (!receives(call, rank)) return output;
  const bool has_own_block = call.traits().has_blocks_in_input;
  if (call.traits().reduces) {
    for (std::size_t i = 0; i < block; ++i) {
      std::vector<std::uint64_t> column;
      for (const auto& input : inputs) column.push_back(input[(has_own_block ? own : 0) + i]);
      output.push_back(test::fold(call.data_type(), call.reduction(), column));
    }
    return output;
  }
  for (int source = 0; source < ranks; ++source) {
    if (call.traits().has_root() && source != call.root) continue;
    const auto& input = inputs[static_cast<std::size_t>(source)];
    for (std::size_t i = 0; i < block; ++i) output.push_back(input[(has_own_block ? own : 0) + i]);
  }
  return output;
}

const std::vector<std::string> kEvenNodes = {"aabb", "aaabbb", "aabbcc",      "aaaabbbb",
                                             "abba", "abab",   "aaaabbbbcccc"};
const std::vector<std::string> kUnevenNodes = {"aab", "abb", "aaabb", "abbccc", "cabbac"};

struct Case {
  std::string nodes;
  CollectiveCall call;
};

// Returns a random call that can be divided. Most calls are short; some need several slices.
Case random_case(std::mt19937& random) {
  static const std::vector<Collective> collectives = {
      Collective::all_reduce, Collective::reduce,         Collective::broadcast,
      Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all};
  for (;;) {
    const auto& all = random() % 4 == 0 ? kUnevenNodes : kEvenNodes;
    const std::string& nodes = all[random() % all.size()];
    const auto ranks = static_cast<std::uint64_t>(nodes.size());
    const Collective collective = collectives[random() % collectives.size()];
    std::uint64_t count = 1 + random() % (random() % 8 == 0 ? 700'000 : 3'000);
    if (collective == Collective::broadcast) count += 262'144;
    if (traits(collective).exchanges()) count = (count / 10 + 1) * ranks;
    const auto operation = random() % 4 == 0 ? hcclAvg : hcclSum;
    Case made{nodes, call_of(collective, count, static_cast<int>(random() % ranks), operation)};
    const Topology topology = topology_of(nodes);
    if (CallParts::can_divide(NodeLayout(topology, 0), made.call)) return made;
  }
}

TEST(CallParts, GiveTheResultOfTheWholeCall) {
  const unsigned seed = 20261126;
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    const Case chosen = random_case(random);
    const Topology topology = topology_of(chosen.nodes);
    const Words inputs = random_inputs(chosen.call, topology.ranks(), random);
    for (const bool in_place : {false, true}) {
      const Words outputs = test::interpret_parts(topology, chosen.call, in_place, inputs);
      for (int rank = 0; rank < topology.ranks(); ++rank) {
        ASSERT_TRUE(outputs[static_cast<std::size_t>(rank)] == expected(chosen.call, inputs, rank))
            << describe(chosen.call) << " on " << chosen.nodes << ", rank " << rank
            << (in_place ? ", in place" : "") << ", round " << round << " of seed " << seed;
      }
    }
  }
}

TEST(CallParts, DivideWhatEveryNodeCanDo) {
  const Topology even = topology_of("aabb");
  const Topology mixed = topology_of("abab");
  const Topology uneven = topology_of("aab");
  const auto can = [](const Topology& topology, const CollectiveCall& call) {
    return CallParts::can_divide(NodeLayout(topology, 0), call);
  };
  EXPECT_TRUE(can(uneven, call_of(Collective::barrier, 0)));
  EXPECT_TRUE(can(uneven, call_of(Collective::all_reduce, 1)));
  EXPECT_FALSE(can(even, call_of(Collective::all_reduce, 0)));
  // The blocks of a node's ranks must be contiguous.
  EXPECT_TRUE(can(even, call_of(Collective::all_gather, 1)));
  EXPECT_FALSE(can(mixed, call_of(Collective::all_gather, 1)));
  EXPECT_FALSE(can(uneven, call_of(Collective::reduce_scatter, 1)));
  // The column of the root must exist on every node.
  EXPECT_TRUE(can(mixed, call_of(Collective::reduce, 1, 3)));
  EXPECT_TRUE(can(uneven, call_of(Collective::reduce, 1, 2)));
  EXPECT_FALSE(can(uneven, call_of(Collective::reduce, 1, 1)));
  // Short broadcasts and very large exchanges are not divided: they use all ranks' connections.
  EXPECT_FALSE(can(even, call_of(Collective::broadcast, 100, 0)));
  EXPECT_TRUE(can(even, call_of(Collective::broadcast, 1 << 20, 0)));
  EXPECT_TRUE(can(even, call_of(Collective::all_to_all, 1 << 20)));
  EXPECT_FALSE(can(even, call_of(Collective::all_to_all, 1 << 28)));
}

TEST(CallParts, DivideAveragesThatNeedNoPrescale) {
  const Topology topology = topology_of("aabb");
  CollectiveCall call = call_of(Collective::all_reduce, 8, -1, hcclAvg);
  EXPECT_TRUE(CallParts::can_divide(NodeLayout(topology, 0), call));
  call.type = hcclFloat16;
  EXPECT_FALSE(CallParts::can_divide(NodeLayout(topology, 0), call));
}

// The parts of an all-reduce that the columns exchange must add up to exactly the message size, so
// that each element is exchanged only once.
TEST(CallParts, ExchangeEachByteOfANodeOnce) {
  const Topology topology = topology_of("aaaabbbb");
  const CollectiveCall call = call_of(Collective::all_reduce, 5'000'003);
  std::uint64_t elements = 0;
  for (int local = 0; local < 4; ++local) {
    const NodeLayout layout(topology, local);
    const CallParts parts(layout, call, 0);
    for (std::uint64_t index = 0; index < parts.size(); ++index) {
      const CallPart part = parts.at(index);
      if (part.scope == CallPart::Scope::column && part.column == local)
        elements += part.call.count;
    }
  }
  EXPECT_EQ(elements, call.count);
}

TEST(CallParts, NameTheWholeCall) {
  const Topology topology = topology_of("aabb");
  const NodeLayout layout(topology, 1);
  const CollectiveCall call = call_of(Collective::all_reduce, 1'000'000);
  const CallParts parts(layout, call, 17);
  for (std::uint64_t index = 0; index < parts.size(); ++index) {
    const CallPart part = parts.at(index);
    EXPECT_EQ(&program_call(part.call), &call);
    EXPECT_EQ(part.call.whole_number, 17U);
  }
}

}  // namespace
}  // namespace hccl::multinode
