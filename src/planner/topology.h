// SPDX-License-Identifier: Apache-2.0
// Tells which ranks share a node. Pure; the same on all ranks.
#pragma once

#include <string>
#include <vector>

namespace hccl::planner {

class Topology {
 public:
  // `boxes`: the node identity of each rank. Ranks of one node have the same.
  explicit Topology(const std::vector<std::string>& boxes);

  [[nodiscard]] int ranks() const { return static_cast<int>(node_of_.size()); }
  // Nodes in the order of their lowest ranks, the ranks of each ascending.
  [[nodiscard]] const std::vector<std::vector<int>>& nodes() const { return nodes_; }
  [[nodiscard]] bool is_one_node() const { return nodes_.size() == 1; }
  [[nodiscard]] int node_of(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  // Returns the index of a rank among those of its node.
  [[nodiscard]] int local_rank(int rank) const { return local_[static_cast<std::size_t>(rank)]; }

  // All ranks node by node, so that neighbours in this order are on one node wherever they can be.
  [[nodiscard]] const std::vector<int>& node_order() const { return order_; }
  // Returns the index of a rank in that order.
  [[nodiscard]] int place_of(int rank) const { return places_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::vector<int>> nodes_;
  std::vector<int> node_of_, local_, order_, places_;  // by rank; order_ by place
};

}  // namespace hccl::planner
