// SPDX-License-Identifier: Apache-2.0
#include "planned.h"

#include "interpreter.h"
#include "planner/planner.h"
#include "topology/topology.h"

namespace hccl::test {
namespace {

schedule::Collective reduction_of(Collective collective) {
  if (collective == Collective::reduce_scatter) return schedule::Collective::reduce_scatter;
  return collective == Collective::reduce ? schedule::Collective::reduce
                                          : schedule::Collective::all_reduce;
}

}  // namespace

std::vector<std::uint64_t> planned_reduction(
    const Operation& operation, int rank,
    const std::function<std::uint64_t(int, std::size_t)>& input) {
  constexpr std::size_t kCacheLine = 64;
  const topology::Topology topology(operation.nodes);
  const std::size_t element = size_of(operation.type);
  schedule::Shape shape;
  shape.collective = reduction_of(operation.collective);
  shape.rank_count = topology.ranks();
  shape.in_place = operation.in_place;
  const bool by_node = operation.collective != Collective::reduce_scatter;
  const auto place = [&](int of) { return by_node ? topology.place_of(of) : of; };
  shape.root = has_root(operation.collective) ? place(operation.root) : 0;
  const planner::Plan plan = planner::make_plan(shape.collective, operation.count * element,
                                                shape.rank_count, operation.algorithm);
  shape.channels = plan.channels;
  shape.pipeline = plan.pipeline;
  std::vector<AllRanks> channels;
  for (shape.channel = 0; shape.channel < shape.channels; ++shape.channel)
    channels.push_back(build_all(shape, plan.algorithm->build));
  Words inputs(shape.ranks());
  for (int source = 0; source < shape.rank_count; ++source) {
    auto& words = inputs[static_cast<std::size_t>(place(source))];
    for (std::size_t i = 0; i < operation.count * shape.blocks_in_input(); ++i)
      words.push_back(input(source, i));
  }
  const Words outputs =
      interpret(channels, operation.type, operation.reduction, inputs, operation.count,
                static_cast<std::uint32_t>(kCacheLine / element));
  return outputs[static_cast<std::size_t>(place(rank))];
}

}  // namespace hccl::test
