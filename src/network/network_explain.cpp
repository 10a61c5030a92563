// SPDX-License-Identifier: Apache-2.0
// Formats texts for users: the routes to other ranks, the reasons why better ones are not used,
// traffic, plans and paths.
#include "base/log.h"
#include "base/rank_text.h"
#include "base/text.h"
#include "network/network_backend.h"
#include "schedule/printer.h"

#include <algorithm>
#include <map>
#include <vector>

namespace hccl::network {

// The first rank of a node explains for all ranks of the node, because their routes are alike.
void NetworkBackend::explain() const {
  const planner::Topology& topology = planner_->topology();
  if (topology.local_rank(rank_) != 0) return;
  const auto say = [&](const std::string& what) {
    log_line(LogLevel::info, "explain", text(rank_text(rank_), ": ", what));
  };
  for (const auto& transport : transports_) {
    for (const std::string& remark : transport->remarks())
      say(text(transport->name(), ": ", remark));
  }
  std::map<std::string, std::vector<int>> by_route;
  for (int peer = 0; peer < size_; ++peer) {
    const Route& route = routes_[static_cast<std::size_t>(peer)];
    if (route.transport == nullptr) continue;
    const std::string rejected = route.rejected.empty() ? "" : text(" (", route.rejected, ')');
    by_route[text(route.transport->name(), rejected)].push_back(peer);
  }
  for (const auto& [route, ranks] : by_route)
    say(text("reaches ", rank_list(ranks), " by ", route));
}

// A user who expects the speed of RoCE and gets that of TCP should not have to guess why.
void NetworkBackend::tell_fallback() const {
  if (!log_enabled(LogLevel::info) || !config_->transport.empty()) return;
  for (int peer = 0; peer < size_; ++peer) {
    const Route& route = routes_[static_cast<std::size_t>(peer)];
    if (route.transport == nullptr || route.transport->fallback_for().empty()) continue;
    log_line(LogLevel::info, "network",
             text(rank_text(rank_), " reaches ", rank_text(peer), " by ", route.transport->name(),
                  ", not ", route.transport->fallback_for(), " (", route.rejected,
                  "); HCCL_EXPLAIN=1 tells all of it"));
    return;
  }
}

std::string NetworkBackend::transport_to(int rank) const {
  const Route& route = routes_[static_cast<std::size_t>(rank)];
  return route.transport == nullptr ? "itself" : route.transport->name();
}

std::string NetworkBackend::transports() const {
  std::string names;
  for (const auto& transport : transports_) {
    const auto leads = [&](const Route& route) { return route.transport == transport.get(); };
    if (std::ranges::any_of(routes_, leads))
      names += text(names.empty() ? "" : "+", transport->name());
  }
  return names;
}

std::optional<Offer> NetworkBackend::probe(int first, bool only_looks, Deadline deadline,
                                           SpinLock& /*queueing*/) {
  return messages_.probe(first, only_looks, deadline);
}

TrafficReport NetworkBackend::traffic(std::optional<int> peer) const {
  const transport::Counters moved = peer ? traffic_.with(*peer) : traffic_.with_all();
  return {traffic_.algorithm(), peer ? transport_to(*peer) : transports(),
          moved.bytes_sent,     moved.bytes_received,
          moved.sends,          moved.receives};
}

PlanSteps NetworkBackend::plan_of(const PlanRequest& request) const {
  const planner::Plan plan =
      planner_->plan({request.collective, request.bytes, rank_, request.root, request.in_place});
  PlanSteps written{std::string(plan.algorithm->name), transports(), ""};
  schedule::Shape shape = plan.shape;
  for (; shape.channel < shape.channels; ++shape.channel) {
    const schedule::Schedule steps =
        planner_->in_program_numbers(plan, planner_->build(plan, shape));
    schedule::Shape shown = shape;
    shown.rank = rank_;
    shown.root = traits(request.collective).has_root() ? request.root : 0;
    if (request.as_json && shape.channel > 0) written.steps += ',';
    written.steps +=
        request.as_json ? schedule::json_of(shown, steps) : schedule::text_of(shown, steps);
  }
  return written;
}

CallPath NetworkBackend::path_of(const CollectiveCall& call) const {
  const planner::Request request{call.collective, chunk_bytes(call, size_), rank_,
                                 std::max(call.root, 0), false};
  const planner::Plan plan = planner_->plan(request);
  return {text("schedule ", plan.algorithm->name, " over ", transports(), ", ", plan.shape.channels,
               plan.shape.channels == 1 ? " channel" : " channels"),
          planner_->reason(request)};
}

CallPath NetworkBackend::path_of(const PointToPoint& call) const {
  return {text("stream over ", transport_to(call.peer)),
          "the ranks share no memory, or HCCL_ALGO or HCCL_TRANSPORT is set"};
}

}  // namespace hccl::network
