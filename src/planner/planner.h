// SPDX-License-Identifier: Apache-2.0
// How a call between ranks runs: its algorithm, from a table of sizes or as HCCL_ALGO says, and the
// shape of its schedules. Pure; the same on all ranks.
#pragma once

#include "algorithms/catalogue.h"
#include "topology/topology.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hccl::planner {

struct Request {
  Collective collective = Collective::barrier;
  std::uint64_t bytes = 0;  // of the message, or of one block
  int rank = 0;
  int root = 0;
  bool in_place = false;
};

struct Plan {
  const algorithms::Algorithm* algorithm = nullptr;
  // On each node first and last; the algorithm is that across nodes.
  bool hierarchical = false;
  // The shape of the rank's part in the first channel.
  schedule::Shape shape;

  [[nodiscard]] std::string_view name() const {
    return hierarchical ? kHierarchical : algorithm->name;
  }
  static constexpr std::string_view kHierarchical = "hierarchical";
};

class Planner {
 public:
  // `forced`: an algorithm's name, which counts for the collectives that it has; or empty. Throws
  // Error(hcclInvalidArgument) naming HCCL_ALGO and the names there are for any other.
  Planner(topology::Topology topology, std::string forced);
  // The same without a planner.
  static void check(const std::string& forced);

  [[nodiscard]] Plan plan(const Request& request) const;
  // Why plan() chooses what it does: "HCCL_ALGO forces it".
  [[nodiscard]] std::string reason(const Request& request) const;
  // For a shape of the plan: of any rank and channel.
  [[nodiscard]] schedule::Schedule build(const Plan& plan, const schedule::Shape& shape) const;

  // Schedules of messages and roots number ranks node by node; where parts of buffers belong to
  // ranks they keep the program's numbers.
  [[nodiscard]] int place_of(Collective collective, int rank) const;
  [[nodiscard]] int rank_at(Collective collective, int place) const;

  // A schedule of the plan with the program's numbers for peers.
  [[nodiscard]] schedule::Schedule in_program_numbers(const Plan& plan,
                                                      schedule::Schedule schedule) const;

  [[nodiscard]] const topology::Topology& topology() const { return topology_; }

 private:
  [[nodiscard]] bool is_hierarchical(const Request& request) const;

  const topology::Topology topology_;
  const std::string forced_;
  std::vector<std::int32_t> node_sizes_;
};

}  // namespace hccl::planner
