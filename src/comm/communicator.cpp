// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include "base/cancellation.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/server_registry.h"
#include "comm/collective_task.h"
#include "comm/plan_text.h"
#include "comm/point_to_point_task.h"
#include "device/stream.h"
#include "device/verified_buffers.h"
#include "device/work_failure.h"
#include "node/host_staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hccl::comm {

HandleTable<Communicator>& communicators() {
  static auto* table =  // outlives static destructors
      new HandleTable<Communicator>(HandleKind::communicator);
  return *table;
}

Communicator::Communicator(const hcclUniqueId& id, int size, int rank,
                           std::shared_ptr<device::Device> device, std::unique_ptr<Backend> backend,
                           std::unique_ptr<OperationLog> log)
    : id_(id),
      size_(size),
      rank_(rank),
      device_(std::move(device)),
      backend_(std::move(backend)),
      operation_log_(std::move(log)) {}

Communicator::~Communicator() {
  for (const auto& used : streams_) free_staging(*used);
}

// If another rank may still read a staging buffer, the buffer's memory is never reused.
void Communicator::free_staging(UsedStream& used) const noexcept {
  if (used.staging && !backend_->release_staging(*used.backend)) used.staging->abandon();
}

void Communicator::check_usable(const device::Stream& stream) const {
  backend_->throw_if_failed();
  stream.require_open();
  if (&stream.device() != device_.get()) {
    throw Error(hcclInvalidArgument,
                text("the stream belongs to device ", stream.device().id(),
                     ", but the communicator belongs to device ", device_->id(),
                     "; pass a stream of device ", device_->id()));
  }
}

Communicator::UsedStream& Communicator::used_stream(device::Stream& stream) {
  for (const auto& known : streams_) {
    if (known->id == stream.id()) return *known;
  }
  stream.start_worker();
  if (backend_->ranks_share_cores()) stream.keep_long_queue();
  auto made = std::make_unique<UsedStream>();
  made->stream = stream.weak_from_this();
  made->id = stream.id();
  stream.at_destruction(weak_from_this(), [this, id = stream.id()] { forget_stream(id); });
  made->backend = &backend_->open_stream(stream.id());
  streams_.push_back(std::move(made));
  return *streams_.back();
}

bool Communicator::has_called_on(const device::Stream& stream) {
  const std::lock_guard lock(streams_lock_);
  return std::ranges::any_of(streams_, [&](const auto& known) { return known->id == stream.id(); });
}

void Communicator::forget_stream(std::uint64_t id) {
  std::unique_ptr<UsedStream> forgotten;
  {
    const std::lock_guard lock(streams_lock_);
    const auto found = std::ranges::find(streams_, id, [](const auto& known) { return known->id; });
    if (found == streams_.end()) return;
    forgotten = std::move(*found);
    streams_.erase(found);
  }
  free_staging(*forgotten);
  backend_->close_stream(*forgotten->backend);
}

bool Communicator::is_staged(const CollectiveCall& call) const {
  return backend_->needs_staging(call);
}

// With every back end, a message that a rank sends to itself is a copy.
bool Communicator::is_staged(const PointToPoint& call) const {
  return call.peer == rank_ ? node::uses_host_memory(call) : backend_->needs_staging(call);
}

std::uint64_t Communicator::staging_of(UsedStream& on, bool needed) const {
  if (!needed) return 0;
  if (!on.staging) {
    const CancellationBlock block;  // the arena may call fallocate(), a cancellation point
    on.staging = std::make_unique<device::ArenaBuffer>(device_->arena(), node::kStagingBytes,
                                                       "a staging buffer for host memory");
  }
  return on.staging->address();
}

void Communicator::begin_use(device::Stream& stream) {
  check_usable(stream);
  const std::lock_guard lock(streams_lock_);
  static_cast<void>(used_stream(stream));
}

void Communicator::make_staging(device::Stream& stream) {
  check_usable(stream);
  const std::lock_guard lock(streams_lock_);
  static_cast<void>(staging_of(used_stream(stream), true));
}

void Communicator::enqueue(device::Stream& stream, const CollectiveCall& call) {
  check_usable(stream);
  if (operation_log_->enabled()) [[unlikely]]
    log_queued(stream, call);
  const std::lock_guard lock(streams_lock_);
  UsedStream& on = used_stream(stream);
  const std::uint64_t staging = staging_of(on, is_staged(call));
  // All ranks queue their first collectives on their streams in the same order. The order of sends
  // and receives may differ between ranks, so only collectives determine the streams' ordinals.
  if (!on.place.has_collectives) {
    on.backend->begin_collectives(next_ordinal_);
    on.place = {next_ordinal_, true};
    ++next_ordinal_;  // not reached if begin_collectives() throws: ranks must agree on ordinals
  }
  auto unless_queued = fail_unless_queued();
  on.last_ticket = stream.emplace_at_once<CollectiveTask>(*this, *on.backend, call, staging);
  unless_queued.dismiss();
  if (has_left_) outlive_calls_of(stream);
}

void Communicator::enqueue(device::Stream& stream, const std::vector<CollectiveCall>& parts) {
  for (const CollectiveCall& part : parts) prepare(stream, part);
  for (const CollectiveCall& part : parts) enqueue(stream, part);
}

void Communicator::enqueue(device::Stream& stream, const std::vector<PointToPoint>& parts) {
  MessageList calls;
  for (const PointToPoint& part : parts) {
    prepare(stream, part);
    calls.push_back(part);
  }
  enqueue(stream, std::move(calls));
}

void Communicator::enqueue(device::Stream& stream, MessageList&& calls) {
  check_usable(stream);
  if (operation_log_->enabled()) [[unlikely]]
    log_queued(stream, calls.all());
  std::vector<SelfCopy> copies = pair_self_messages(calls, rank_);
  const std::lock_guard lock(streams_lock_);
  UsedStream& on = used_stream(stream);
  auto unless_queued = fail_unless_queued();
  for (PointToPoint& call : calls.all()) on.backend->number(call);
  enqueue_on(on, stream, std::move(calls), std::move(copies));
  unless_queued.dismiss();
}

void Communicator::number(device::Stream& stream, PointToPoint& call) {
  const std::lock_guard lock(streams_lock_);
  auto unless_numbered = fail_unless_queued();
  used_stream(stream).backend->number(call);
  unless_numbered.dismiss();
}

void Communicator::enqueue_numbered(device::Stream& stream, MessageList&& calls,
                                    std::vector<SelfCopy>&& copies) {
  auto unless_queued = fail_unless_queued();
  check_usable(stream);
  if (operation_log_->enabled()) [[unlikely]]
    log_queued(stream, calls.all());
  const std::lock_guard lock(streams_lock_);
  enqueue_on(used_stream(stream), stream, std::move(calls), std::move(copies));
  unless_queued.dismiss();
}

void Communicator::enqueue_on(UsedStream& on, device::Stream& stream, MessageList&& calls,
                              std::vector<SelfCopy>&& copies) {
  if (!on.place.has_collectives) on.place.ordinal = next_ordinal_;
  const auto on_host = [](std::uint64_t address) { return !device::is_device_address(address); };
  const bool staged =
      std::ranges::any_of(calls.all(), [&](const auto& call) { return is_staged(call); }) ||
      std::ranges::any_of(
          copies, [&](const SelfCopy& copy) { return on_host(copy.from) && on_host(copy.to); });
  const std::uint64_t staging = staging_of(on, staged);
  // Allocated here, because nothing may throw while a command is constructed in the queue.
  auto own = copies.empty() ? nullptr : std::make_unique<std::vector<SelfCopy>>(std::move(copies));
  on.last_ticket = stream.emplace_at_once<PointToPointTask>(
      *this, *on.backend, on.place, std::move(calls), std::move(own), staging);
  if (has_left_) outlive_calls_of(stream);
}

void Communicator::log_queued(const device::Stream& stream, const CollectiveCall& call) {
  const std::uint64_t bytes = std::max(send_bytes(call, size_), recv_bytes(call, size_));
  operation_log_->note_path(call.collective, bytes, node::uses_host_memory(call, rank_, size_),
                            [&] { return path_of(call); });
  operation_log_->note_queued(describe(call), bytes, {stream.id(), stream.pushed() + 1});
}

void Communicator::log_queued(const device::Stream& stream, std::span<const PointToPoint> calls) {
  for (const PointToPoint& call : calls) {
    operation_log_->note_path(Collective::point_to_point, call.bytes(),
                              node::uses_host_memory(call), [&] { return path_of(call); });
    operation_log_->note_queued(describe(call), call.bytes(), {stream.id(), stream.pushed() + 1});
  }
}

void Communicator::note_fault(hcclResult_t code, const char* what) {
  backend_->fail(code, what);
  if (failed()) {
    const AsyncError fault = backend_->async_error();
    device::explain_failure(fault.code, fault.text);
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
      text(call, " did not run, because earlier work on its stream failed: ", failure.text));
}

TrafficReport Communicator::traffic(std::optional<int> peer) const {
  if (peer && (*peer < 0 || *peer >= size_ || *peer == rank_)) {
    throw Error(hcclInvalidArgument, text("peer is ", *peer, " on rank ", rank_, " of ", size_,
                                          "; pass another rank of the communicator, or -1 for all "
                                          "other ranks"));
  }
  return backend_->traffic(peer);
}

std::string Communicator::plan_of(const PlanRequest& request) const {
  return plan_text(request, backend_->plan_of(request), rank_, size_);
}

bool Communicator::comes_before(const Communicator& other) const {
  return std::memcmp(&id_, &other.id_, sizeof(id_)) < 0;
}

std::optional<Offer> Communicator::probe(std::chrono::milliseconds timeout) {
  throw_if_failed();
  const bool only_looks = timeout.count() == 0;  // Deadline::after(0) never expires
  const std::optional<Offer> found =
      backend_->probe(first_probed_, only_looks, Deadline::after(timeout), streams_lock_);
  if (found) first_probed_ = (found->source + 1) % size_;
  throw_if_failed();
  return found;
}

void Communicator::finalize() {
  std::vector<std::pair<std::shared_ptr<device::Stream>, std::uint64_t>> pending;
  {
    const std::lock_guard lock(streams_lock_);
    for (const auto& used : streams_) {
      if (auto stream = used->stream.lock())
        pending.emplace_back(std::move(stream), used->last_ticket);
    }
  }
  // Does not run the queue on this thread, because work of another communicator at its head may
  // never end. The stream's worker runs the queue, and an abort ends this wait.
  constexpr auto kLook = std::chrono::milliseconds(10);
  for (const auto& [stream, ticket] : pending) {
    while (!stream->progress()->reached(ticket) && !failed()) {
      stream->hurry();
      stream->progress()->wait_until(ticket, Deadline::after(kLook));
    }
  }
  device::HostEpoch::advance();
}

void Communicator::watch(FileDescriptor process, int peer) {
  watches_.emplace_back(std::move(process), [this, peer] { backend_->peer_died(peer); });
}

void Communicator::leave() {
  backend_->depart();
  bootstrap::retire_unique_id(id_);
  watches_.clear();
  outlive_calls();
}

// Queues a command that holds a reference to the communicator until the command has run. Calls
// themselves hold no reference, because counting references would make each call slower.
void Communicator::outlive_calls_of(device::Stream& stream) {
  const bool for_good = own_keeper_ != nullptr;
  own_keeper_ = shared_from_this();  // remains set if the next lines throw
  device::Ordering keeper{
      [kept = shared_from_this()]() noexcept { return device::Outcome::success; }};
  stream.emplace_behind<decltype(keeper)>(std::move(keeper));
  if (!for_good) own_keeper_.reset();
}

// Releases each stream without the lock, because a stream's destructor takes the lock.
void Communicator::outlive_calls() {
  for (;;) {
    std::shared_ptr<device::Stream> stream;
    const std::lock_guard lock(streams_lock_);
    has_left_ = true;
    const auto next =
        std::ranges::find_if(streams_, [](const auto& used) { return !used->is_outlived; });
    if (next == streams_.end()) return;
    UsedStream& used = **next;
    used.is_outlived = true;
    stream = used.stream.lock();
    if (stream != nullptr && !stream->progress()->reached(used.last_ticket))
      outlive_calls_of(*stream);
  }
}

const char* Communicator::async_error_text() {
  std::string found = backend_->async_error().text;
  if (found.empty()) return nullptr;
  const std::lock_guard lock(error_texts_mutex_);
  return error_texts_.insert(std::move(found)).first->c_str();
}

}  // namespace hccl::comm
