// SPDX-License-Identifier: Apache-2.0
#include "planned.h"

#include "interpreter.h"
#include "planner/planner.h"
#include "planner/topology.h"

namespace hccl::test {

std::vector<std::uint64_t> planned_reduction(
    const Operation& operation, int rank,
    const std::function<void(int, std::span<std::uint64_t>)>& input) {
  constexpr std::size_t kCacheLine = 64;
  const planner::Planner planner(planner::Topology(operation.nodes), operation.algorithm);
  const std::size_t element = size_of(operation.type);
  planner::Request request{.collective = operation.collective,
                           .bytes = operation.count * element,
                           .root = traits(operation.collective).has_root() ? operation.root : 0};
  // The library prescales into a copy of the input, and plans as for an operation out of place.
  request.in_place =
      operation.in_place && !(operation.reduction == hcclAvg && is_prescaled(operation.type));
  const planner::Plan plan = planner.plan(request);
  const auto place = [&](int of) { return planner.position_of(request.collective, of); };
  const auto build = [&](const schedule::Shape& own) { return planner.build(plan, own); };
  schedule::Shape shape = plan.shape;
  std::vector<AllRanks> channels;
  for (; shape.channel < shape.channels; ++shape.channel)
    channels.push_back(build_all(shape, build));
  Words inputs(shape.ranks());
  for (int source = 0; source < shape.rank_count; ++source) {
    auto& words = inputs[static_cast<std::size_t>(place(source))];
    words.resize(operation.count * shape.blocks_in_input());
    input(source, words);
  }
  const Words outputs =
      interpret(channels, operation.type, operation.reduction, inputs, operation.count,
                static_cast<std::uint32_t>(kCacheLine / element));
  return outputs[static_cast<std::size_t>(place(rank))];
}

}  // namespace hccl::test
