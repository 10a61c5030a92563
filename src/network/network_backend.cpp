// SPDX-License-Identifier: Apache-2.0
// Chooses a transport for each peer: the first in the list that reaches it.
#include "network/network_backend.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/interfaces.h"
#include "base/process.h"
#include "base/text.h"
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

NetworkBackend::NetworkBackend(std::shared_ptr<const Config> config, int rank, int size)
    : config_(std::move(config)), rank_(rank), size_(size), messages_(*this, size) {
  planner::Planner::check(config_->algorithm);
  const std::string& forced = config_->transport;
  const auto is_forced = [&](const auto& factory) { return factory.name == forced; };
  if (!forced.empty() && std::ranges::none_of(transport::transport_factories(), is_forced)) {
    throw Error(hcclInvalidArgument,
                text("HCCL_TRANSPORT='", forced, "' is not a transport; set it to one of ",
                     all_transports()));
  }
}

// All endpoints share one deadline, because a broken link makes each of them wait.
NetworkBackend::~NetworkBackend() {
  cut_link();
  const Deadline deadline = Deadline::after(kLongestParting);
  messages_.part(deadline);
  for (const auto& stream : streams_) stream->part(deadline);
}

void NetworkBackend::part_from(transport::Endpoint& endpoint, Deadline deadline) const {
  if (failed()) return endpoint.cut();
  endpoint.finish(deadline);
}

std::vector<std::byte> NetworkBackend::announce(const Secret& secret) {
  transport::Settings settings;
  settings.membership = {secret, 0, rank_, size_};
  settings.box = box_identity();
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

void NetworkBackend::connect(bootstrap::RankTable& table, planner::Topology topology,
                             std::vector<std::string> rank_texts,
                             std::unique_ptr<node::NodeSegment> segment) {
  segment_ = std::move(segment);
  planner_.emplace(std::move(topology), config_->algorithm);
  rank_texts_ = std::move(rank_texts);
  traffic_.resize(size_);
  for (const bootstrap::RankInfo& member : table.members)
    routes_.push_back(member.rank == rank_ ? Route() : choose_route(member.rank, member.announced));
  if (config_->explain) explain();
  tell_fallback();
  memory_ = std::make_unique<NetworkMemory>(arena(), transports_);
  if (table.link.connection.socket.valid()) attach_link(std::move(table.link));
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
  throw Error(hcclInvalidUsage,
              text("no transport leads from ", rank_text(rank_), " to ", rank_text(peer), " (",
                   reasons, "); see HCCL_TRANSPORT, HCCL_ALGO and HCCL_SOCKET_IFNAME on both"));
}

BackendStream& NetworkBackend::open_stream(std::uint64_t stream) {
  auto opened = std::make_unique<StreamConnections>(*this, stream);
  const std::lock_guard lock(streams_mutex_);
  return *streams_.emplace_back(std::move(opened));
}

void NetworkBackend::close_stream(BackendStream& stream) noexcept {
  std::unique_ptr<StreamConnections> closed;
  {
    const std::lock_guard lock(streams_mutex_);
    const auto found = std::ranges::find(
        streams_, &stream, [](const auto& open) -> BackendStream* { return open.get(); });
    closed = std::move(*found);
    streams_.erase(found);
  }
  closed->part(Deadline::after(kLongestParting));
}

void NetworkBackend::wake() {
  messages_.wake_probe();
  const std::lock_guard lock(streams_mutex_);
  for (const auto& stream : streams_) stream->wake();
}

std::unique_ptr<transport::Endpoint> NetworkBackend::open(int peer,
                                                          transport::ConnectionId connection) {
  const Route& route = routes_[static_cast<std::size_t>(peer)];
  return route.transport->open(peer, connection, route.address);
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

}  // namespace hccl::network
