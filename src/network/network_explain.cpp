// SPDX-License-Identifier: Apache-2.0
// HCCL_EXPLAIN: by which ways this rank reaches the others, and why not by better ones.
#include "base/log.h"
#include "base/rank_text.h"
#include "base/text.h"
#include "network/network_backend.h"

#include <map>
#include <vector>

namespace hccl::network {

// Ranks of one node see the same: the first of them tells it for all.
void NetworkBackend::explain() const {
  const planner::Topology& topology = planner_->topology();
  if (topology.local_rank(options_.rank) != 0) return;
  const auto say = [&](const std::string& what) {
    log_line(LogLevel::info, "explain", text(rank_text(options_.rank), ": ", what));
  };
  for (const auto& transport : transports_) {
    for (const std::string& remark : transport->remarks())
      say(text(transport->name(), ": ", remark));
  }
  std::map<std::string, std::vector<int>> by_route;
  for (int peer = 0; peer < options_.size; ++peer) {
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
  if (!log_enabled(LogLevel::info) || !options_.transport.empty()) return;
  for (int peer = 0; peer < options_.size; ++peer) {
    const Route& route = routes_[static_cast<std::size_t>(peer)];
    if (route.transport == nullptr || route.transport->fallback_for().empty()) continue;
    log_line(LogLevel::info, "network",
             text(rank_text(options_.rank), " reaches ", rank_text(peer), " by ",
                  route.transport->name(), ", not ", route.transport->fallback_for(), " (",
                  route.rejected, "); HCCL_EXPLAIN=1 tells all of it"));
    return;
  }
}

}  // namespace hccl::network
