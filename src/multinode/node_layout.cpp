// SPDX-License-Identifier: Apache-2.0
#include "multinode/node_layout.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hccl::multinode {

NodeLayout::NodeLayout(const planner::Topology& topology, int rank)
    : topology_(topology), rank_(rank) {
  const auto& nodes = topology.nodes();
  local_ranks_ = static_cast<int>(nodes[static_cast<std::size_t>(node())].size());
  is_even_ = std::ranges::all_of(
      nodes, [&](const std::vector<int>& ranks) { return ranks.size() == nodes.front().size(); });
  std::vector<int> ascending(topology.node_order().size());
  std::iota(ascending.begin(), ascending.end(), 0);
  has_contiguous_nodes_ = is_even_ && topology.node_order() == ascending;
}

}  // namespace hccl::multinode
