// SPDX-License-Identifier: Apache-2.0
// Using and leaving a communicator.
#include "comm/communicator.h"

#include "base/cancellation.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/server_registry.h"
#include "comm/collective_task.h"
#include "comm/host_staging.h"
#include "comm/plan_text.h"
#include "comm/point_to_point_task.h"
#include "network/call_memory.h"
#include "network/network_messages.h"
#include "network/stream_connections.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace hccl::comm {

HandleTable<Communicator>& communicators() {
  static auto* table =  // outlives static destructors
      new HandleTable<Communicator>(HandleKind::communicator);
  return *table;
}

Communicator::Communicator(const hcclUniqueId& id, int size, int rank,
                           std::shared_ptr<device::Device> device)
    : id_(id), size_(size), rank_(rank), device_(std::move(device)) {}

Communicator::~Communicator() {
  watches_.clear();
  cut_link();
}

std::shared_ptr<bootstrap::ControlLink> Communicator::link() {
  const std::lock_guard lock(link_mutex_);
  return link_;
}

// A stream's thread may be telling others of a fault.
void Communicator::cut_link() {
  std::shared_ptr<bootstrap::ControlLink> link;
  {
    const std::lock_guard lock(link_mutex_);
    link.swap(link_);
  }
  // A callback may hold it as well, and uses this communicator.
  if (link) link->cancel();
}

// Tells ranks that do not see this node's memory of the fault.
void Communicator::tell_others() {
  if (!failed()) return;
  if (const auto others = link())
    others->raise(segment_->fault().code(), [this] { return segment_->fault().text(); });
  if (network_) network_->wake();
}

Communicator::StreamLane& Communicator::lane_of(device::Stream& stream) {
  for (const auto& lane : lanes_) {
    if (lane->stream_id == stream.id()) return *lane;
  }
  if (segment_ && !segment_->cores().exclusive) stream.keep_long_queue();
  auto lane = std::make_unique<StreamLane>();
  lane->stream = stream.weak_from_this();
  lane->stream_id = stream.id();
  stream.at_destruction(weak_from_this(), [this, id = stream.id()] { forget_stream(id); });
  lanes_.push_back(std::move(lane));
  return *lanes_.back();
}

bool Communicator::has_called_on(const device::Stream& stream) {
  const std::lock_guard lock(lanes_lock_);
  return std::ranges::any_of(lanes_,
                             [&](const auto& lane) { return lane->stream_id == stream.id(); });
}

void Communicator::prepare_staging(device::Stream& stream, bool for_own_messages) {
  check_usable(stream);
  // A network back end reads and writes the program's memory itself.
  if (network_ && !for_own_messages) return;
  const std::lock_guard lock(lanes_lock_);
  static_cast<void>(staging_of(lane_of(stream), true));
}

const StagingBuffer* Communicator::staging_of(StreamLane& lane, bool needed) const {
  if (!needed) return nullptr;
  if (!lane.stage) {
    const CancellationBlock block;  // the arena may give pages back
    lane.stage = std::make_unique<StagingBuffer>(device_->arena());
  }
  return lane.stage.get();
}

void Communicator::forget_stream(std::uint64_t stream_id) {
  std::unique_ptr<StreamLane> forgotten;
  {
    const std::lock_guard lock(lanes_lock_);
    const auto found =
        std::ranges::find(lanes_, stream_id, [](const auto& lane) { return lane->stream_id; });
    if (found == lanes_.end()) return;
    forgotten = std::move(*found);
    lanes_.erase(found);
  }
  if (!network_) return;
  const auto& lane = forgotten->lane;
  network_->forget(stream_id, lane ? std::optional(lane->ordinal()) : std::nullopt);
}

void Communicator::check_usable(const device::Stream& stream) const {
  throw_if_failed();
  stream.require_open();
  if (&stream.device() != device_.get()) {
    throw Error(hcclInvalidArgument, text("the stream belongs to device ", stream.device().id(),
                                          " but the communicator to device ", device_->id(),
                                          "; pass a stream of device ", device_->id()));
  }
}

void Communicator::enqueue(device::Stream& stream, const CollectiveCall& call) {
  check_usable(stream);
  if (operation_log_->enabled()) [[unlikely]]
    tell_queued(stream, call);
  const std::lock_guard lock(lanes_lock_);
  StreamLane& lane = lane_of(stream);
  const StagingBuffer* const stage =
      staging_of(lane, !network_ && uses_host_memory(call, rank_, size_));
  // Ranks agree on the order in which collectives use streams, not on that of sends and receives.
  if (segment_ && !lane.lane) {
    lane.lane = segment_->make_lane(next_ordinal_);
    ++next_ordinal_;  // only if there was memory: ranks agree on the numbers
  }
  lane.last_ticket = stream.emplace_at_once<CollectiveTask>(*this, lane.lane.get(), call, stage);
  if (has_left_) outlive_calls_of(stream);
}

void Communicator::number_on(const StreamLane& lane, std::span<PointToPoint> calls) {
  const std::uint32_t ordinal = lane.lane ? lane.lane->ordinal() + 1 : 0;
  for (PointToPoint& call : calls) {
    if (network_) {
      network_->messages().number(call, lane.stream_id);
    } else {
      engine_->mailboxes().number(call, ordinal);
    }
  }
}

void Communicator::number(device::Stream& stream, std::span<PointToPoint> calls) {
  const std::lock_guard lock(lanes_lock_);
  number_on(lane_of(stream), calls);
}

void Communicator::enqueue(device::Stream& stream, MessageList&& calls,
                           std::vector<SelfCopy>&& copies) {
  check_usable(stream);
  if (operation_log_->enabled()) [[unlikely]]
    tell_queued(stream, calls.all());
  const std::lock_guard lock(lanes_lock_);
  enqueue_on(lane_of(stream), stream, std::move(calls), std::move(copies));
}

void Communicator::queue(device::Stream& stream, MessageList&& calls) {
  check_usable(stream);
  if (operation_log_->enabled()) [[unlikely]]
    tell_queued(stream, calls.all());
  std::vector<SelfCopy> copies = pair_self_messages(calls, rank_);
  const std::lock_guard lock(lanes_lock_);
  StreamLane& lane = lane_of(stream);
  number_on(lane, calls.all());
  enqueue_on(lane, stream, std::move(calls), std::move(copies));
}

void Communicator::enqueue_on(StreamLane& lane, device::Stream& stream, MessageList&& calls,
                              std::vector<SelfCopy>&& copies) {
  if (!lane.pending) lane.pending = node::Engine::make_pending_messages();
  const node::StreamPlace place{lane.lane ? lane.lane->ordinal() : next_ordinal_, lane.lane.get(),
                                lane.pending.get()};
  const auto on_host = [](std::uint64_t address) { return !device::is_device_address(address); };
  const bool staged =
      (!network_ &&
       std::ranges::any_of(calls.all(), [](const auto& call) { return uses_host_memory(call); })) ||
      std::ranges::any_of(
          copies, [&](const SelfCopy& copy) { return on_host(copy.from) && on_host(copy.to); });
  const StagingBuffer* const stage = staging_of(lane, staged);
  // Allocated before: nothing may throw while a command is made in its place.
  auto own = copies.empty() ? nullptr : std::make_unique<std::vector<SelfCopy>>(std::move(copies));
  lane.last_ticket = stream.emplace_at_once<PointToPointTask>(
      *this, stream.id(), place, std::move(calls), std::move(own), stage);
  if (has_left_) outlive_calls_of(stream);
}

void Communicator::note_fault(hcclResult_t code, const char* what) {
  if (segment_) segment_->fail(code, what);
  tell_others();
  if (failed()) {
    device::explain_failure(segment_->fault().code(), segment_->fault().text());
  } else {
    device::explain_failure(code, what);
  }
  log(LogLevel::info, "comm", "rank ", rank_, ": ", what);
}

void Communicator::throw_behind_failure(const device::Lookahead& lookahead,
                                        const std::string& call) {
  const device::FailureNote failure = lookahead.failure();
  throw Error(
      failure.code,
      text(call, " did not run, since work before it on its stream failed: ", failure.text));
}

void Communicator::run_on_network(std::uint32_t lane, const CollectiveCall& call,
                                  const device::Lookahead& stream, bool more_behind) {
  const network::Buffer sent{call.send, sends(call, rank_) ? send_bytes(call, size_) : 0};
  const bool receives = hccl::receives(call, rank_) && !keeps_own_data(call, rank_);
  const network::Buffer received{call.recv, receives ? recv_bytes(call, size_) : 0};
  network::require_writable(received);
  if (!sent.is_within(received)) network::require_readable(sent);
  network_->learn(sent.address, sent.bytes);
  network_->learn(received.address, received.bytes);
  const network::CallMemory send(device_->arena(), call.send);
  const network::CallMemory recv(device_->arena(), call.recv);
  network_->lane(lane).run(call, send.get(), recv.get(), stream, more_behind);
}

void Communicator::exchange_on_network(const network::NetworkStream& stream,
                                       std::span<const PointToPoint> calls,
                                       std::span<const PointToPoint> behind) {
  for (const PointToPoint& call : calls) {
    const network::Buffer buffer{call.address, call.bytes()};
    call.direction == Direction::send ? network::require_readable(buffer)
                                      : network::require_writable(buffer);
  }
  network_->messages().exchange(stream, calls, behind, device_->arena());
}

TrafficReport Communicator::traffic(std::optional<int> peer) const {
  if (peer && (*peer < 0 || *peer >= size_ || *peer == rank_)) {
    throw Error(hcclInvalidArgument, text("peer is ", *peer, ", for rank ", rank_, " of ", size_,
                                          "; pass another rank of the communicator, or -1"));
  }
  if (!network_) return {size_ > 1 ? "node" : "copy", "memory"};
  const network::Traffic& traffic = network_->traffic();
  const transport::Counters moved = peer ? traffic.with(*peer) : traffic.with_all();
  return {traffic.algorithm(), peer ? network_->transport_to(*peer) : network_->transports(),
          moved.bytes_sent,    moved.bytes_received,
          moved.sends,         moved.receives};
}

std::string Communicator::plan_of(Collective collective, std::uint64_t bytes, int root,
                                  bool in_place, bool json) const {
  const planner::Request request{collective, bytes, rank_, root, in_place};
  if (!network_) return node_plan_text(request, size_, json);
  return plan_text(network_->planner(), request, network_->transports(), json);
}

bool Communicator::comes_before(const Communicator& other) const {
  return std::memcmp(&id_, &other.id_, sizeof(id_)) < 0;
}

void Communicator::finalize() {
  std::vector<std::pair<std::shared_ptr<device::Stream>, std::uint64_t>> pending;
  {
    const std::lock_guard lock(lanes_lock_);
    for (const auto& lane : lanes_) {
      if (auto stream = lane->stream.lock())
        pending.emplace_back(std::move(stream), lane->last_ticket);
    }
  }
  // Other communicators' work may stand before this one's and wait for ever: so this thread leaves
  // the queue to the stream's worker, and an abort ends the wait.
  constexpr auto kLook = std::chrono::milliseconds(10);
  for (const auto& [stream, ticket] : pending) {
    while (!stream->progress()->reached(ticket) && !failed()) {
      stream->hurry();
      stream->progress()->wait_until(ticket, Deadline::after(kLook));
    }
  }
}

void Communicator::throw_if_failed() const {
  if (segment_) segment_->throw_if_failed();
}

void Communicator::leave() {
  if (segment_) segment_->depart();
  cut_link();
  bootstrap::retire_unique_id(id_);
  watches_.clear();
  outlive_calls();
}

void Communicator::fail(const char* call) {
  if (segment_) {
    segment_->fault().raise_with(hcclSystemError,
                                 [&] { return text(segment_->own_text(), " called ", call); });
  }
  tell_others();
}

void Communicator::set_wait_limit(std::uint64_t milliseconds) {
  if (engine_) engine_->wait_limit().set(milliseconds);
  if (network_) network_->wait_limit().set(milliseconds);
}

hcclResult_t Communicator::async_error() {
  if (failed()) return segment_->fault().code();
  return network_ ? network_->trouble().code : hcclSuccess;
}

const char* Communicator::async_error_text() {
  std::string found;
  if (failed()) {
    found = segment_->fault().text();
  } else if (network_) {
    found = network_->trouble().text;
  }
  if (found.empty()) return nullptr;
  const std::lock_guard lock(error_texts_mutex_);
  return error_texts_.insert(std::move(found)).first->c_str();
}

}  // namespace hccl::comm
