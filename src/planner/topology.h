// SPDX-License-Identifier: Apache-2.0
// Records which ranks share a node. A topology is a plain value and the same on all ranks.
#pragma once

#include <string>
#include <vector>

namespace hccl::planner {

class Topology {
 public:
  // `identities` holds the identity of each rank's node. Ranks of one node have the same identity.
  explicit Topology(const std::vector<std::string>& identities);

  [[nodiscard]] int ranks() const { return static_cast<int>(node_of_.size()); }
  // Returns the ranks of each node, in ascending order. The nodes are in the order of their lowest
  // ranks.
  [[nodiscard]] const std::vector<std::vector<int>>& nodes() const { return nodes_; }
  [[nodiscard]] bool is_one_node() const { return nodes_.size() == 1; }
  [[nodiscard]] int node_of(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  // Returns the rank's index on its node.
  [[nodiscard]] int local_rank(int rank) const { return local_[static_cast<std::size_t>(rank)]; }

  // Returns all ranks node by node, so that neighbours in this order share a node wherever
  // possible.
  [[nodiscard]] const std::vector<int>& node_order() const { return order_; }
  // Returns the index of a rank in node_order().
  [[nodiscard]] int position_of(int rank) const {
    return positions_[static_cast<std::size_t>(rank)];
  }

 private:
  std::vector<std::vector<int>> nodes_;
  std::vector<int> node_of_, local_, order_, positions_;  // by rank; order_ by position
};

}  // namespace hccl::planner
