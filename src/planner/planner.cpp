// SPDX-License-Identifier: Apache-2.0
// Chooses the algorithm and the shape of a call, and checks the name of a forced algorithm.
#include "planner/planner.h"

#include "algorithms/hierarchical.h"
#include "base/error.h"
#include "base/text.h"
#include "planner/table.h"

#include <algorithm>

namespace hccl::planner {
namespace {

using algorithms::Algorithm;

constexpr std::uint64_t kPipelinePiece = 128 << 10;
constexpr std::uint64_t kMostPipeline = 64;

// The minimum number of bytes per channel of a hierarchical call that has several channels.
constexpr std::uint64_t kPhasedPiece = 1 << 20;

bool keeps_numbers(Collective collective) {
  return traits(collective).has_blocks_in_input || traits(collective).has_blocks_in_output;
}

std::uint32_t pieces(std::uint64_t bytes, std::uint64_t piece, std::uint64_t most) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes / piece, 1, most));
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms::catalogue()) {
    if (algorithm.collective == Collective::barrier) continue;  // a barrier has only one algorithm
    if (std::ranges::find(names, algorithm.name) == names.end()) names.push_back(algorithm.name);
  }
  return names;
}

}  // namespace

Planner::Planner(Topology topology, std::string forced)
    : topology_(std::move(topology)), forced_(std::move(forced)) {
  check(forced_);
  for (const auto& ranks : topology_.nodes())
    node_sizes_.push_back(static_cast<std::int32_t>(ranks.size()));
}

void Planner::check(const std::string& forced) {
  const std::vector<std::string_view> known = names();
  if (forced.empty() || std::ranges::find(known, forced) != known.end()) return;
  std::string list;
  for (const std::string_view one : known) list += text(list.empty() ? "" : ", ", one);
  throw Error(hcclInvalidArgument,
              text("HCCL_ALGO=", quoted(forced), " is not valid; set it to one of ", list));
}

bool Planner::is_hierarchical(const Request& request) const {
  if (request.collective != Collective::all_reduce || topology_.is_one_node()) return false;
  const Algorithm* forced = algorithms::find(forced_, request.collective);
  if (forced != nullptr && forced->hierarchical()) return true;
  const bool even = std::ranges::all_of(
      node_sizes_, [&](std::int32_t size) { return size == node_sizes_.front(); });
  return forced_.empty() && even && node_sizes_.front() > 1 &&
         planner::is_hierarchical(request.bytes, topology_.ranks());
}

const Algorithm& Planner::choose(const Request& request) const {
  if (is_hierarchical(request)) {
    const auto rails = static_cast<std::uint64_t>(std::ranges::min(node_sizes_));
    return algorithms::hierarchical_over(algorithm_for(request.collective, request.bytes / rails,
                                                       static_cast<int>(node_sizes_.size())));
  }
  const Algorithm* forced = algorithms::find(forced_, request.collective);
  if (forced != nullptr && !forced->hierarchical()) return *forced;
  return algorithm_for(request.collective, request.bytes, topology_.ranks());
}

Plan Planner::plan(const Request& request) const {
  const Algorithm& algorithm = choose(request);
  Plan plan;
  plan.algorithm = &algorithm;
  plan.shape.collective = request.collective;
  plan.shape.in_place = request.in_place;
  plan.shape.rank = position_of(request.collective, request.rank);
  plan.shape.rank_count = topology_.ranks();
  plan.shape.root =
      traits(request.collective).has_root() ? position_of(request.collective, request.root) : 0;
  const std::uint32_t channels = algorithm.knobs.channels;
  if (algorithm.hierarchical()) {
    plan.shape.channels = pieces(request.bytes, kPhasedPiece, channels);
  } else if (topology_.ranks() > 2 && request.bytes > kPipelinePiece) {
    plan.shape.channels = channels;
  }
  if (algorithm.knobs.pipelined)
    plan.shape.pipeline =
        pieces(request.bytes / plan.shape.channels, kPipelinePiece, kMostPipeline);
  return plan;
}

std::string Planner::reason(const Request& request) const {
  const Plan chosen = plan(request);
  if (!forced_.empty() && chosen.algorithm->name == forced_)
    return text("HCCL_ALGO=", forced_, " forces it");
  if (chosen.algorithm->hierarchical())
    return "all nodes have the same number of ranks, so each node reduces its own data first";
  std::string row = row_text(request.collective, request.bytes, topology_.ranks());
  if (forced_.empty()) return row;
  // A forced algorithm that supports the collective is left out only if it is hierarchical and
  // there is only one node.
  const std::string why = algorithms::find(forced_, request.collective) != nullptr
                              ? " needs several nodes"
                              : text(" does not support ", name_of(request.collective));
  return text("HCCL_ALGO=", forced_, why, ", and ", row);
}

schedule::Schedule Planner::build(const Plan& plan, const schedule::Shape& shape) const {
  if (!plan.algorithm->hierarchical()) return plan.algorithm->build(shape);
  return algorithms::hierarchical_all_reduce(shape, node_sizes_, *plan.algorithm);
}

schedule::Schedule Planner::in_program_numbers(const Plan& plan,
                                               schedule::Schedule schedule) const {
  for (schedule::Transfer& transfer : schedule.transfers)
    transfer.peer = rank_at(plan.shape.collective, transfer.peer);
  return schedule;
}

int Planner::position_of(Collective collective, int rank) const {
  return keeps_numbers(collective) ? rank : topology_.position_of(rank);
}

int Planner::rank_at(Collective collective, int place) const {
  return keeps_numbers(collective) ? place
                                   : topology_.node_order()[static_cast<std::size_t>(place)];
}

}  // namespace hccl::planner
