// SPDX-License-Identifier: Apache-2.0
// A rank's position in a communicator over several nodes. The ranks with the same local rank form a
// column, which exchanges data between the nodes.
#pragma once

#include "planner/topology.h"

namespace hccl::multinode {

class NodeLayout {
 public:
  // The topology must outlive the layout.
  NodeLayout(const planner::Topology& topology, int rank);

  [[nodiscard]] const planner::Topology& topology() const { return topology_; }
  [[nodiscard]] int nodes() const { return static_cast<int>(topology_.nodes().size()); }
  [[nodiscard]] int ranks() const { return topology_.ranks(); }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int node() const { return topology_.node_of(rank_); }
  [[nodiscard]] int local_rank() const { return topology_.local_rank(rank_); }
  // Returns the number of ranks on this rank's node.
  [[nodiscard]] int local_ranks() const { return local_ranks_; }
  // Returns whether all nodes have the same number of ranks.
  [[nodiscard]] bool is_even() const { return is_even_; }
  // Returns whether the ranks are numbered node by node and all nodes have the same number of
  // ranks. The blocks of a node's ranks are then contiguous in buffers.
  [[nodiscard]] bool has_contiguous_nodes() const { return has_contiguous_nodes_; }
  // Returns whether this column exists: column 0 always does, and the others do if is_even().
  [[nodiscard]] bool has_column(int column) const { return column == 0 || is_even_; }

 private:
  const planner::Topology& topology_;
  const int rank_;
  int local_ranks_;
  bool is_even_;
  bool has_contiguous_nodes_;
};

}  // namespace hccl::multinode
