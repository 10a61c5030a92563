// SPDX-License-Identifier: Apache-2.0
// Chooses, for each peer, the first registered transport that reaches it.
#include "network/routes.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/interfaces.h"
#include "base/log.h"
#include "base/process.h"
#include "base/rank_text.h"
#include "base/text.h"

#include <algorithm>
#include <utility>

namespace hccl::network {
namespace {

std::string all_transports() {
  std::string names;
  for (const auto& factory : transport::transport_factories())
    names += text(names.empty() ? "" : ", ", factory.name);
  return names;
}

}  // namespace

Routes::Routes(std::shared_ptr<const Config> config, int rank, int size)
    : config_(std::move(config)), rank_(rank), size_(size) {
  check(config_->transport);
}

void Routes::check(const std::string& forced) {
  const auto is_forced = [&](const auto& factory) { return factory.name == forced; };
  if (forced.empty() || std::ranges::any_of(transport::transport_factories(), is_forced)) return;
  throw Error(hcclInvalidArgument, text("HCCL_TRANSPORT=", quoted(forced),
                                        " is not valid; set it to one of ", all_transports()));
}

Bytes Routes::announce(const bootstrap::CommunicatorSecret& secret) {
  transport::Settings settings;
  settings.membership = {secret.bytes, 0, rank_, size_, secret.is_private};
  settings.node = node_identity();
  settings.interfaces = local_interfaces();
  settings.config = config_;
  WireWriter writer;
  for (const auto& factory : transport::transport_factories()) {
    if (!config_->transport.empty() && config_->transport != factory.name) continue;
    transport::MakeResult made = factory.make(settings);
    if (!made.transport) {
      missing_[factory.name] = made.why_not;
      continue;
    }
    transports_.push_back(std::move(made.transport));
    const Bytes& address = transports_.back()->address();
    writer.put_text(factory.name);
    writer.put_u16(static_cast<std::uint16_t>(address.size()));
    writer.put_bytes(address);
  }
  if (transports_.empty()) {
    throw Error(hcclSystemError, text("HCCL_TRANSPORT=", config_->transport,
                                      " is not available: ", missing_.begin()->second,
                                      "; choose another transport or unset it"));
  }
  return writer.take();
}

void Routes::choose_all(const bootstrap::RankTable& table, std::vector<std::string> rank_texts) {
  rank_texts_ = std::move(rank_texts);
  for (const bootstrap::RankInfo& member : table.members)
    routes_.push_back(member.rank == rank_ ? Route() : choose(member.rank, member.announced));
}

Routes::Route Routes::choose(int peer, std::span<const std::byte> announced) const {
  constexpr std::size_t kLongestName = 32;
  WireReader reader(announced);
  std::map<std::string, Bytes> offered;
  while (reader.ok() && !reader.complete()) {
    std::string name = reader.text(kLongestName);
    const std::size_t length = reader.u16();
    if (reader.ok()) offered[std::move(name)] = reader.bytes(length);
  }
  std::string reasons;
  for (const auto& [name, why] : missing_)
    reasons += text(reasons.empty() ? "" : "; ", name, ": ", why);
  for (const auto& transport : transports_) {
    const auto found = offered.find(transport->name());
    if (found == offered.end()) {
      reasons += text(reasons.empty() ? "" : "; ", transport->name(),
                      ": the peer does not offer this transport");
      continue;
    }
    const transport::Reach reach = transport->reach(found->second);
    if (reach.possible) return {transport.get(), found->second, reasons};
    reasons += text(reasons.empty() ? "" : "; ", transport->name(), ": ", reach.why_not);
  }
  throw Error(
      hcclInvalidUsage,
      text("no transport connects ", rank_text(rank_), " to ", rank_text(peer), " (", reasons,
           "); check HCCL_TRANSPORT, HCCL_ALGO and HCCL_SOCKET_IFNAME on both ranks"));
}

std::unique_ptr<transport::Endpoint> Routes::open(int peer, transport::ConnectionId connection) {
  const Route& route = routes_[static_cast<std::size_t>(peer)];
  return route.transport->open(peer, connection, route.address);
}

transport::Trouble Routes::trouble() const {
  for (const auto& transport : transports_) {
    const auto leads = [&](const Route& route) { return route.transport == transport.get(); };
    if (std::ranges::none_of(routes_, leads)) continue;
    if (transport::Trouble trouble = transport->trouble(); trouble.code != hcclSuccess)
      return trouble;
  }
  return {};
}

void Routes::explain() const {
  const auto log = [&](const std::string& what) {
    log_line(LogLevel::info, "explain", text(rank_text(rank_), ": ", what));
  };
  for (const auto& transport : transports_) {
    for (const std::string& remark : transport->remarks())
      log(text(transport->name(), ": ", remark));
  }
  std::map<std::string, std::vector<int>> by_route;
  for (int peer = 0; peer < size_; ++peer) {
    const Route& route = routes_[static_cast<std::size_t>(peer)];
    if (route.transport == nullptr) continue;
    const std::string rejected = route.rejected.empty() ? "" : text(" (", route.rejected, ')');
    by_route[text(route.transport->name(), rejected)].push_back(peer);
  }
  for (const auto& [route, ranks] : by_route)
    log(text("reaches ", rank_list(ranks), " by ", route));
}

void Routes::log_fallback() const {
  if (!log_enabled(LogLevel::info) || !config_->transport.empty()) return;
  for (int peer = 0; peer < size_; ++peer) {
    const Route& route = routes_[static_cast<std::size_t>(peer)];
    if (route.transport == nullptr || route.transport->fallback_for().empty()) continue;
    log_line(LogLevel::info, "network",
             text(rank_text(rank_), " reaches ", rank_text(peer), " by ", route.transport->name(),
                  ", not ", route.transport->fallback_for(), " (", route.rejected,
                  "); set HCCL_EXPLAIN=1 for the full explanation"));
    return;
  }
}

std::string Routes::transport_to(int rank) const {
  const Route& route = routes_[static_cast<std::size_t>(rank)];
  return route.transport == nullptr ? "itself" : route.transport->name();
}

std::string Routes::transport_names() const {
  std::string names;
  for (const auto& transport : transports_) {
    const auto leads = [&](const Route& route) { return route.transport == transport.get(); };
    if (std::ranges::any_of(routes_, leads))
      names += text(names.empty() ? "" : "+", transport->name());
  }
  return names;
}

}  // namespace hccl::network
