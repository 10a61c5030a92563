// SPDX-License-Identifier: Apache-2.0
// Plans a call between ranks: chooses its algorithm, from a table or by HCCL_ALGO, and the shape of
// its schedules. Planning is pure, so all ranks choose the same algorithm and the same channels.
#pragma once

#include "algorithms/catalogue.h"
#include "planner/topology.h"

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
  // The shape of the rank's part in the first channel.
  schedule::Shape shape;
};

class Planner {
 public:
  // `forced`: the name of an algorithm, or empty. Each collective that has an algorithm of this
  // name uses that algorithm, except that a hierarchical one is not used on a single node. Throws
  // as check() does.
  Planner(Topology topology, std::string forced);
  // Throws Error(hcclInvalidArgument), which names HCCL_ALGO and the known algorithms, unless
  // `forced` is empty or the name of an algorithm for a collective other than barrier.
  static void check(const std::string& forced);

  [[nodiscard]] Plan plan(const Request& request) const;
  // Returns the reason for plan()'s choice, such as "HCCL_ALGO=ring forces it".
  [[nodiscard]] std::string reason(const Request& request) const;
  // Builds the schedule for `shape`, which is plan.shape with any rank and channel.
  [[nodiscard]] schedule::Schedule build(const Plan& plan, const schedule::Shape& shape) const;

  // Convert between a rank of the program and its place: the rank's number in schedules. Places are
  // assigned node by node, except in collectives whose buffers have a block for each rank: there,
  // the place equals the rank.
  [[nodiscard]] int position_of(Collective collective, int rank) const;
  [[nodiscard]] int rank_at(Collective collective, int place) const;

  // Returns a schedule of the plan with its peers converted from places to ranks of the program.
  [[nodiscard]] schedule::Schedule in_program_numbers(const Plan& plan,
                                                      schedule::Schedule schedule) const;

  [[nodiscard]] const Topology& topology() const { return topology_; }

 private:
  [[nodiscard]] const algorithms::Algorithm& choose(const Request& request) const;
  [[nodiscard]] bool is_hierarchical(const Request& request) const;

  const Topology topology_;
  const std::string forced_;
  std::vector<std::int32_t> node_sizes_;
};

}  // namespace hccl::planner
