// SPDX-License-Identifier: Apache-2.0
#include "multinode/multi_node_backend.h"

#include "base/text.h"
#include "multinode/call_parts.h"
#include "multinode/multi_node_stream.h"
#include "node/host_staging.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace hccl::multinode {
namespace {

constexpr std::chrono::seconds kLongestParting{2};
constexpr std::uint64_t kMostPartsInText = 12;

std::string text_of(const CallPart& part, const NodeLayout& layout) {
  if (part.scope == CallPart::Scope::copy) return "copy at the root\n";
  const bool in_column = part.scope == CallPart::Scope::column;
  const std::uint64_t bytes =
      chunk_bytes(part.call, in_column ? layout.nodes() : layout.local_ranks());
  const std::string size = bytes == 0 ? "" : text(" of ", bytes, " B");
  const std::string scope = in_column ? text("column ", part.column, ": ") : "each node: ";
  return text(scope, name_of(part.call.collective), size, '\n');
}

planner::Planner planner_of_column(int nodes) {
  std::vector<std::string> identities;
  identities.reserve(static_cast<std::size_t>(nodes));
  for (int node = 0; node < nodes; ++node) identities.push_back(std::to_string(node));
  return {planner::Topology(identities), ""};
}

}  // namespace

MultiNodeBackend::MultiNodeBackend(std::unique_ptr<network::NetworkBackend> network,
                                   std::uint64_t cache_bytes)
    : network_(std::move(network)),
      layout_(network_->planner().topology(), network_->rank()),
      column_planner_(planner_of_column(layout_.nodes())),
      engine_(network_->segment(), {cache_bytes, {}, {}}) {}

MultiNodeBackend::~MultiNodeBackend() {
  const Deadline deadline = Deadline::after(kLongestParting);
  for (const auto& stream : streams_) stream->part(deadline);
}

BackendStream& MultiNodeBackend::open_stream(std::uint64_t stream) {
  auto& flat = dynamic_cast<network::StreamConnections&>(network_->open_stream(stream));
  auto opened = std::make_unique<MultiNodeStream>(*this, flat);
  const std::lock_guard lock(streams_mutex_);
  return *streams_.emplace_back(std::move(opened));
}

void MultiNodeBackend::close_stream(BackendStream& stream) noexcept {
  std::unique_ptr<MultiNodeStream> closed;
  {
    const std::lock_guard lock(streams_mutex_);
    const auto found = std::ranges::find(
        streams_, &stream, [](const auto& open) -> BackendStream* { return open.get(); });
    closed = std::move(*found);
    streams_.erase(found);
  }
  network::StreamConnections& flat = closed->flat();
  closed->part(Deadline::after(kLongestParting));
  closed.reset();
  network_->close_stream(flat);
}

bool MultiNodeBackend::release_staging(BackendStream& stream) noexcept {
  return dynamic_cast<MultiNodeStream&>(stream).release_staging();
}

// A part sends and receives at most as much data as the call's input or output holds. If both fit
// into the payload of a slot, no part needs staging.
bool MultiNodeBackend::needs_staging(const CollectiveCall& call) const {
  const int ranks = network_->size();
  return CallParts::can_divide(layout_, call) &&
         std::max(send_bytes(call, ranks), recv_bytes(call, ranks)) > node::Slot::kPayloadBytes &&
         node::uses_host_memory(call, network_->rank(), ranks);
}

PlanSteps MultiNodeBackend::plan_of(const PlanRequest& request) const {
  CollectiveCall call;
  call.collective = request.collective;
  call.type = hcclUint8;
  call.root = request.root;
  call.count = request.bytes;
  if (call.traits().exchanges()) call.count *= static_cast<std::uint64_t>(layout_.ranks());
  if (!CallParts::can_divide(layout_, call)) return network_->plan_of(request);
  PlanSteps plan{std::string(kTwoLevel), network_->traffic({}).transport, ""};
  if (request.as_json) return plan;
  const CallParts parts(layout_, call, 0);
  const std::uint64_t shown = std::min<std::uint64_t>(parts.size(), kMostPartsInText);
  for (std::uint64_t index = 0; index < shown; ++index)
    plan.steps += text_of(parts.at(index), layout_);
  if (shown < parts.size()) plan.steps += text(parts.size() - shown, " more parts\n");
  return plan;
}

CallPath MultiNodeBackend::path_of(const CollectiveCall& call) const {
  if (!CallParts::can_divide(layout_, call)) return network_->path_of(call);
  const char* between_nodes = "the first ranks of the nodes";
  if (CallParts(layout_, call, 0).uses_all_columns())
    between_nodes = "the ranks with the same local rank";
  else if (call.traits().has_root())
    between_nodes = "the ranks with the root's local rank";
  return {std::string(kTwoLevel),
          text("the ranks of each node exchange data through shared memory; between the nodes, ",
               between_nodes, " exchange data")};
}

}  // namespace hccl::multinode
