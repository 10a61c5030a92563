// SPDX-License-Identifier: Apache-2.0
#include "planner/topology.h"

#include <algorithm>

namespace hccl::planner {

Topology::Topology(const std::vector<std::string>& identities) : positions_(identities.size()) {
  std::vector<std::string> known;
  for (const std::string& identity : identities) {
    const auto rank = static_cast<int>(node_of_.size());
    const auto found = std::ranges::find(known, identity);
    const auto node = static_cast<std::size_t>(found - known.begin());
    if (found == known.end()) {
      known.push_back(identity);
      nodes_.emplace_back();
    }
    node_of_.push_back(static_cast<int>(node));
    local_.push_back(static_cast<int>(nodes_[node].size()));
    nodes_[node].push_back(rank);
  }
  for (const auto& ranks : nodes_) order_.insert(order_.end(), ranks.begin(), ranks.end());
  for (std::size_t place = 0; place < order_.size(); ++place)
    positions_[static_cast<std::size_t>(order_[place])] = static_cast<int>(place);
}

}  // namespace hccl::planner
