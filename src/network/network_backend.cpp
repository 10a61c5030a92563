// SPDX-License-Identifier: Apache-2.0
// Choosing a transport for each peer: the first in the list that reaches it.
#include "network/network_backend.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/interfaces.h"
#include "base/text.h"
#include "network/network_messages.h"
#include "network/stream_connections.h"

#include <algorithm>

namespace hccl::network {
namespace {

constexpr std::chrono::seconds kLongestParting{2};

std::string all_transports() {
  std::string names;
  for (const auto& factory : transport::transport_factories())
    names += text(names.empty() ? "" : ", ", factory.name);
  return names;
}

}  // namespace

NetworkBackend::NetworkBackend(NetworkOptions options)
    : options_(std::move(options)),
      messages_(std::make_unique<NetworkMessages>(*this, options_.size)) {
  planner::Planner::check(options_.algorithm);
  const auto named = [&](const auto& factory) { return factory.name == options_.transport; };
  if (!options_.transport.empty() &&
      std::ranges::none_of(transport::transport_factories(), named)) {
    throw Error(hcclInvalidArgument,
                text("HCCL_TRANSPORT='", options_.transport,
                     "' is not a transport; set it to one of ", all_transports()));
  }
}

// All endpoints share the time that a link that is cut makes them wait.
NetworkBackend::~NetworkBackend() {
  const Deadline deadline = Deadline::after(kLongestParting);
  messages_->part(deadline);
  for (const auto& [ordinal, lane] : lanes_) lane->part(deadline);
}

void NetworkBackend::part_from(transport::Endpoint& endpoint, Deadline deadline) const {
  if (fault_ != nullptr && fault_->raised()) return endpoint.cut();
  endpoint.finish(deadline);
}

std::vector<std::byte> NetworkBackend::announce(const Secret& secret) {
  transport::Settings settings;
  settings.membership = {secret, 0, options_.rank, options_.size};
  settings.box = options_.box;
  settings.interfaces = local_interfaces();
  settings.interface_names = options_.interfaces;
  settings.ib_devices = options_.ib_devices;
  settings.ib_gid_index = options_.ib_gid_index;
  settings.ib_disable = options_.ib_disable;
  WireWriter writer;
  for (const auto& factory : transport::transport_factories()) {
    if (!options_.transport.empty() && options_.transport != factory.name) continue;
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
    throw Error(hcclSystemError, text("HCCL_TRANSPORT=", options_.transport,
                                      " is not available: ", missing_.begin()->second,
                                      "; choose another transport or unset it"));
  }
  return writer.take();
}

void NetworkBackend::connect(const std::vector<std::vector<std::byte>>& announced,
                             planner::Topology topology, std::vector<std::string> rank_texts) {
  planner_.emplace(std::move(topology), options_.algorithm);
  rank_texts_ = std::move(rank_texts);
  traffic_.resize(options_.size);
  for (int peer = 0; peer < options_.size; ++peer) {
    if (peer == options_.rank) {
      routes_.emplace_back();
    } else {
      routes_.push_back(choose_route(peer, announced[static_cast<std::size_t>(peer)]));
    }
  }
  if (options_.explain) explain();
  tell_fallback();
}

NetworkBackend::Route NetworkBackend::choose_route(int peer,
                                                   std::span<const std::byte> announced) const {
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
      reasons += text(reasons.empty() ? "" : "; ", transport->name(), ": it does not offer that");
      continue;
    }
    const transport::Reach reach = transport->reach(found->second);
    if (reach.possible) return {transport.get(), found->second, reasons};
    reasons += text(reasons.empty() ? "" : "; ", transport->name(), ": ", reach.why_not);
  }
  throw Error(
      hcclInvalidUsage,
      text("no transport leads from ", rank_text(options_.rank), " to ", rank_text(peer), " (",
           reasons, "); see HCCL_TRANSPORT, HCCL_ALGO and HCCL_SOCKET_IFNAME on both"));
}

void NetworkBackend::attach(node::Fault& fault, const node::CoreCount& cores,
                            device::Arena& arena) {
  memory_ = std::make_unique<NetworkMemory>(arena, transports_);
  fault_ = &fault;
  ladder_ = cores.ladder();
}

StreamConnections& NetworkBackend::lane(std::uint32_t ordinal) {
  const std::lock_guard lock(lanes_mutex_);
  if (const auto known = lanes_.find(ordinal); known != lanes_.end()) return *known->second;
  // Made before it is entered: everybody who walks through the lanes relies on finding one.
  auto lane = std::make_unique<StreamConnections>(*this, ordinal);
  return *lanes_.emplace(ordinal, std::move(lane)).first->second;
}

std::uint64_t NetworkBackend::calls_of(std::uint32_t ordinal) {
  const std::lock_guard lock(lanes_mutex_);
  const auto found = lanes_.find(ordinal);
  return found == lanes_.end() || !found->second ? 0 : found->second->calls();
}

void NetworkBackend::forget(std::uint64_t stream, std::optional<std::uint32_t> ordinal) {
  messages_->forget(stream);
  if (!ordinal) return;
  decltype(lanes_)::node_type forgotten;
  {
    const std::lock_guard lock(lanes_mutex_);
    forgotten = lanes_.extract(*ordinal);
  }
  if (forgotten) forgotten.mapped()->part(Deadline::after(kLongestParting));
}

void NetworkBackend::wake() {
  messages_->wake();
  const std::lock_guard lock(lanes_mutex_);
  for (const auto& [ordinal, lane] : lanes_) lane->wake();
}

std::unique_ptr<transport::Endpoint> NetworkBackend::open(int peer,
                                                          transport::ConnectionId connection) {
  const Route& route = routes_[static_cast<std::size_t>(peer)];
  return route.transport->open(peer, connection, route.address);
}

std::string NetworkBackend::transport_to(int rank) const {
  const Route& route = routes_[static_cast<std::size_t>(rank)];
  return route.transport == nullptr ? "itself" : route.transport->name();
}

transport::Trouble NetworkBackend::trouble() const {
  for (const auto& transport : transports_) {
    const auto leads = [&](const Route& route) { return route.transport == transport.get(); };
    if (std::ranges::none_of(routes_, leads)) continue;
    if (transport::Trouble trouble = transport->trouble(); trouble.code != hcclSuccess)
      return trouble;
  }
  return {};
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

}  // namespace hccl::network
