// SPDX-License-Identifier: Apache-2.0
// Opens the connections of streams, describes traffic and plans, and propagates faults. Ranks of
// this node see a fault in shared memory; ranks of other nodes receive it over the control link.
#include "network/network_backend.h"

#include "base/text.h"
#include "network/stream_connections.h"
#include "schedule/printer.h"

#include <algorithm>
#include <utility>

namespace hccl::network {
namespace {

constexpr std::chrono::seconds kLongestParting{2};

}  // namespace

NetworkBackend::NetworkBackend(std::shared_ptr<const Config> config, int rank, int size)
    : config_(std::move(config)),
      rank_(rank),
      size_(size),
      routes_(config_, rank, size),
      messages_(*this, size) {
  planner::Planner::check(config_->algorithm);
}

// All endpoints share one deadline: otherwise, each broken connection would add a wait of its own.
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

void NetworkBackend::connect(bootstrap::RankTable& table, planner::Topology topology,
                             std::vector<std::string> rank_texts,
                             std::shared_ptr<node::NodeSegment> segment) {
  segment_ = std::move(segment);
  planner_.emplace(std::move(topology), config_->algorithm);
  traffic_.resize(size_);
  routes_.choose_all(table, std::move(rank_texts));
  // The first rank of a node explains the routes for all ranks of the node, whose routes are alike.
  if (config_->explain && planner_->topology().local_rank(rank_) == 0) routes_.explain();
  routes_.log_fallback();
  memory_ = std::make_unique<NetworkMemory>(arena(), routes_.transports());
  if (table.link.connection.socket.valid()) attach_link(std::move(table.link));
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
  messages_.probe().wake();
  const std::lock_guard lock(streams_mutex_);
  for (const auto& stream : streams_) stream->wake();
}

std::optional<Offer> NetworkBackend::probe(int first, bool only_looks, Deadline deadline,
                                           SpinLock& /*queueing*/) {
  return messages_.probe().find(first, only_looks, deadline);
}

TrafficReport NetworkBackend::traffic(std::optional<int> peer) const {
  const transport::Counters moved = peer ? traffic_.with(*peer) : traffic_.with_all();
  return {traffic_.algorithm(), peer ? routes_.transport_to(*peer) : routes_.transport_names(),
          moved.bytes_sent,     moved.bytes_received,
          moved.sends,          moved.receives};
}

PlanSteps NetworkBackend::plan_of(const PlanRequest& request) const {
  const planner::Plan plan =
      planner_->plan({request.collective, request.bytes, rank_, request.root, request.in_place});
  PlanSteps written{std::string(plan.algorithm->name), routes_.transport_names(), ""};
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
  return {text("schedule ", plan.algorithm->name, " over ", routes_.transport_names(), ", ",
               plan.shape.channels, plan.shape.channels == 1 ? " channel" : " channels"),
          planner_->reason(request)};
}

CallPath NetworkBackend::path_of(const PointToPoint& call) const {
  return {text("stream over ", routes_.transport_to(call.peer)),
          "the ranks share no memory, or HCCL_ALGO or HCCL_TRANSPORT is set"};
}

AsyncError NetworkBackend::async_error() const {
  if (failed()) return {segment_->fault().code(), segment_->fault().text()};
  const transport::Trouble here = routes_.trouble();
  return {here.code, here.text};
}

void NetworkBackend::fail(hcclResult_t code, const char* why) noexcept {
  segment_->fail(code, why);
  tell_others();
}

void NetworkBackend::peer_died(int peer) noexcept {
  segment_->rank_died(peer);
  tell_others();
}

// Another rank of this node may have raised a fault that has not reached the other nodes. Those
// nodes must receive that fault before they see this rank's departure, which would otherwise seem
// to be the cause.
void NetworkBackend::depart() {
  tell_others();
  segment_->depart();
  cut_link();
}

void NetworkBackend::tell_others() {
  if (!failed()) return;
  if (const auto others = link())
    others->raise(segment_->fault().code(), [this] { return segment_->fault().text(); });
  wake();
}

std::shared_ptr<bootstrap::ControlLink> NetworkBackend::link() {
  const std::lock_guard lock(link_mutex_);
  return link_;
}

// Takes the link under the lock, because another thread may read `link_`.
void NetworkBackend::cut_link() {
  std::shared_ptr<bootstrap::ControlLink> link;
  {
    const std::lock_guard lock(link_mutex_);
    link.swap(link_);
  }
  // Waits for running callbacks, because they use this back end.
  if (link) link->cancel();
}

void NetworkBackend::attach_link(bootstrap::LinkSocket socket) {
  stall_reports_.attach([this] { return link(); }, socket.server);
  bootstrap::ControlLink::Callbacks callbacks;
  callbacks.fault = [this](hcclResult_t code, const std::string& what) {
    if (!failed()) {
      segment_->fault().raise_with(code, [&] {
        const transport::Trouble here =
            routes_.trouble();  // a problem of this rank can make others seem lost
        return here.code != hcclSuccess ? text(what, "; on this node: ", here.text) : what;
      });
    }
    wake();
  };
  callbacks.departed = [this](int rank) {
    stall_reports_.on_departed(rank);
    wake();
  };
  callbacks.inquiry = [this] {
    stall_reports_.on_inquiry();
    wake();
  };
  callbacks.verdict = [this](const std::string& root_cause) {
    stall_reports_.on_verdict(root_cause);
  };
  const std::lock_guard lock(link_mutex_);  // callbacks read link_
  link_ = std::make_shared<bootstrap::ControlLink>(std::move(socket), std::move(callbacks));
}

}  // namespace hccl::network
