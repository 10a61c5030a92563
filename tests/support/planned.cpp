// SPDX-License-Identifier: Apache-2.0
#include "planned.h"

#include "interpreter.h"
#include "multinode/call_parts.h"
#include "planner/planner.h"
#include "planner/topology.h"
#include "two_level.h"

#include <cstdlib>

namespace hccl::test {
namespace {

using Input = std::function<void(int, std::span<std::uint64_t>)>;

CollectiveCall call_of(const Operation& operation) {
  CollectiveCall call;
  call.collective = operation.collective;
  call.type = static_cast<std::uint8_t>(operation.type);
  call.operation = static_cast<std::uint8_t>(operation.reduction);
  call.root = traits(operation.collective).has_root() ? operation.root : -1;
  call.count = operation.count;
  return call;
}

Words inputs_of(const Operation& operation, int ranks, const Input& input) {
  const auto blocks = static_cast<std::size_t>(send_chunks(call_of(operation), ranks));
  Words inputs(static_cast<std::size_t>(ranks));
  for (int source = 0; source < ranks; ++source) {
    auto& words = inputs[static_cast<std::size_t>(source)];
    words.resize(operation.count * blocks);
    input(source, words);
  }
  return inputs;
}

// Returns whether the library divides the operation into parts.
bool is_divided(const Operation& operation, const planner::Topology& topology) {
  const auto nodes = static_cast<int>(topology.nodes().size());
  return operation.algorithm.empty() && std::getenv("HCCL_TRANSPORT") == nullptr &&
         topology.ranks() > nodes &&
         multinode::CallParts::can_divide(multinode::NodeLayout(topology, 0), call_of(operation));
}

// Returns the expected result on `rank` of an operation that is not divided into parts: interprets
// the plan that all ranks run together.
std::vector<std::uint64_t> result_of_plan(const Operation& operation,
                                          const planner::Planner& planner, int rank,
                                          const Input& input) {
  constexpr std::size_t kCacheLine = 64;
  const std::size_t element = size_of(operation.type);
  planner::Request request{.collective = operation.collective,
                           .bytes = operation.count * element,
                           .root = traits(operation.collective).has_root() ? operation.root : 0};
  // To average 16-bit floats, the library prescales the input into a copy. It therefore plans an
  // out-of-place call.
  request.in_place =
      operation.in_place && !(operation.reduction == hcclAvg && is_prescaled(operation.type));
  const planner::Plan plan = planner.plan(request);
  const auto place = [&](int of) { return planner.position_of(request.collective, of); };
  const auto build = [&](const schedule::Shape& own) { return planner.build(plan, own); };
  schedule::Shape shape = plan.shape;
  std::vector<AllRanks> channels;
  for (; shape.channel < shape.channels; ++shape.channel)
    channels.push_back(build_all(shape, build));
  const Words by_rank = inputs_of(operation, shape.rank_count, input);
  Words inputs(by_rank.size());
  for (int source = 0; source < shape.rank_count; ++source)
    inputs[static_cast<std::size_t>(place(source))] = by_rank[static_cast<std::size_t>(source)];
  const Words outputs =
      interpret(channels, operation.type, operation.reduction, inputs, operation.count,
                static_cast<std::uint32_t>(kCacheLine / element));
  return outputs[static_cast<std::size_t>(place(rank))];
}

}  // namespace

std::vector<std::uint64_t> planned_reduction(const Operation& operation, int rank,
                                             const Input& input) {
  const planner::Topology topology(operation.nodes);
  if (!is_divided(operation, topology)) {
    return result_of_plan(operation, planner::Planner(topology, operation.algorithm), rank, input);
  }
  const Words inputs = inputs_of(operation, topology.ranks(), input);
  return interpret_parts(topology, call_of(operation), operation.in_place,
                         inputs)[static_cast<std::size_t>(rank)];
}

}  // namespace hccl::test
