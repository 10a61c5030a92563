// SPDX-License-Identifier: Apache-2.0
// Building, using and leaving a communicator.
#include "comm/communicator.h"

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/collective_task.h"
#include "comm/host_staging.h"
#include "comm/point_to_point_task.h"
#include "node/cache_size.h"

#include <algorithm>
#include <cstring>

#include <unistd.h>

namespace hccl::comm {
namespace {

// What ranks tell each other of themselves, besides what bootstrap knows.
struct RankBlob {
  static constexpr std::uint32_t kLayout = 1;
  std::uint32_t layout = kLayout;
  std::uint32_t module = 0;
  node::CpuAllowance cpus;
};

std::vector<std::byte> encode(const RankBlob& blob) {
  std::vector<std::byte> bytes(sizeof blob);
  std::memcpy(bytes.data(), &blob, sizeof blob);
  return bytes;
}

RankBlob decode(const bootstrap::Member& member) {
  RankBlob blob;
  if (member.blob.size() == sizeof blob) std::memcpy(&blob, member.blob.data(), sizeof blob);
  if (member.blob.size() != sizeof blob || blob.layout != RankBlob::kLayout) {
    throw Error(hcclInvalidUsage,
                text("rank ", member.rank, " (pid ", member.pid, ", host ", member.host,
                     ") runs another version of hccl; install the same on all ranks"));
  }
  return blob;
}

// Until they can work together.
void refuse_several_nodes(const bootstrap::Roster& roster) {
  const bootstrap::Member& first = roster.members.front();
  for (const bootstrap::Member& member : roster.members) {
    if (member.box == first.box) continue;
    throw Error(hcclUnsupported,
                text("ranks on several nodes are not supported yet: rank 0 (pid ", first.pid,
                     ", host ", first.host, ") and rank ", member.rank, " (pid ", member.pid,
                     ", host ", member.host, ") are on different ones; run all ranks on one node, ",
                     "as one user and with one HCCL_NODE_ID"));
  }
}

}  // namespace

HandleTable<Communicator>& communicators() {
  static auto* table =  // outlives static destructors
      new HandleTable<Communicator>(HandleKind::communicator);
  return *table;
}

std::shared_ptr<Communicator> Communicator::create(const hcclUniqueId& id, int size, int rank,
                                                   std::shared_ptr<device::Device> device) {
  if (size < 1 || size > node::kMostRanks) {
    throw Error(hcclInvalidArgument, text("nranks is ", size, "; pass 1 to ", node::kMostRanks));
  }
  if (rank < 0 || rank >= size) {
    throw Error(hcclInvalidArgument,
                text("rank is ", rank, " of ", size, "; pass 0 to ", size - 1));
  }
  const hcclUniqueId resolved = bootstrap::resolve_unique_id(id);
  std::shared_ptr<Communicator> communicator(
      new Communicator(resolved, size, rank, std::move(device)));
  if (size > 1) communicator->connect();
  return communicator;
}

Communicator::Communicator(const hcclUniqueId& id, int size, int rank,
                           std::shared_ptr<device::Device> device)
    : id_(id), size_(size), rank_(rank), device_(std::move(device)) {}

Communicator::~Communicator() { watches_.clear(); }

void Communicator::connect() {
  const auto settings = config();
  RankBlob blob;
  blob.module = device_->module();
  blob.cpus = node::CpuAllowance::of_this_thread();
  bootstrap::Contribution mine{encode(blob), device_->arena().view()->file().duplicate(), {}};
  const auto make_control = [](int ranks) { return node::ControlBlock::create(ranks); };
  const bootstrap::Roster roster = bootstrap::join(id_, size_, rank_, std::move(mine), make_control,
                                                   Deadline::after(settings->init_timeout));
  refuse_several_nodes(roster);
  std::vector<node::Peer> peers;
  std::vector<node::CpuAllowance> allowances;
  for (const bootstrap::Member& member : roster.members) {
    allowances.push_back(decode(member).cpus);
    peers.push_back(
        {device::ArenaView::open(member.memory), member.pid, member.shares_pids, member.host});
  }
  node::EngineOptions options;
  options.rank = rank_;
  options.cores = node::count_cores(allowances);
  options.cache_bytes = node::last_level_cache_bytes(allowances);
  options.operation_timeout = settings->operation_timeout;
  options.hang_report = settings->hang_report;
  engine_ = std::make_unique<node::Engine>(SharedSegment::map(roster.control), std::move(peers),
                                           device_->arena(), options);
  for (const bootstrap::Member& member : roster.members) {
    if (!member.process.valid()) continue;  // of this very process
    watches_.emplace_back(member.process.duplicate(),
                          [this, rank = member.rank] { engine_->rank_died(rank); });
  }
  log_summary(roster);
}

void Communicator::log_summary(const bootstrap::Roster& roster) const {
  if (!log_enabled(LogLevel::info)) return;
  const auto& cores = engine_->cores();
  const auto strangers = std::ranges::count(roster.members, false, &bootstrap::Member::shares_pids);
  const std::string namespaces =
      strangers == 0 ? "" : text(", ", strangers, " ranks in other pid namespaces");
  log(LogLevel::info, "comm", "rank ", rank_, " of ", size_, " on 1 node (",
      roster.members.front().host, "), module ", device_->module(), ", engine node, ", cores.cores,
      " cores, waits by ", cores.exclusive ? "spinning" : "yielding", ", memory shared by memfd",
      namespaces);
}

Communicator::StreamLane& Communicator::lane_of(device::Stream& stream) {
  for (const auto& lane : lanes_) {
    if (lane->stream_id == stream.id()) return *lane;
  }
  auto lane = std::make_unique<StreamLane>();
  lane->stream = stream.weak_from_this();
  lane->stream_id = stream.id();
  stream.at_destruction([self = weak_from_this(), id = stream.id()] {
    if (const auto communicator = self.lock()) communicator->forget_stream(id);
  });
  lanes_.push_back(std::move(lane));
  return *lanes_.back();
}

void Communicator::prepare_stage(device::Stream& stream) {
  check_usable(stream);
  const std::lock_guard lock(lanes_lock_);
  static_cast<void>(stage_of(lane_of(stream), true));
}

const Stage* Communicator::stage_of(StreamLane& lane, bool needed) const {
  if (!needed) return nullptr;
  if (!lane.stage) lane.stage = std::make_unique<Stage>(device_->arena());
  return lane.stage.get();
}

void Communicator::forget_stream(std::uint64_t stream_id) {
  std::unique_ptr<StreamLane> forgotten;
  const std::lock_guard lock(lanes_lock_);
  for (auto& lane : lanes_) {
    if (lane->stream_id != stream_id) continue;
    forgotten = std::move(lane);
    std::erase(lanes_, nullptr);
    return;
  }
}

void Communicator::check_usable(const device::Stream& stream) const {
  throw_if_failed();
  if (&stream.device() != device_.get()) {
    throw Error(hcclInvalidArgument, text("the stream belongs to device ", stream.device().id(),
                                          " but the communicator to device ", device_->id(),
                                          "; pass a stream of device ", device_->id()));
  }
}

void Communicator::enqueue(device::Stream& stream, const node::CollectiveCall& call) {
  check_usable(stream);
  const std::lock_guard lock(lanes_lock_);
  StreamLane& lane = lane_of(stream);
  const Stage* const stage = stage_of(lane, uses_host_memory(call, rank_, size_));
  // Ranks agree on the order in which collectives use streams, not on that of sends and receives.
  if (engine_ && !lane.lane) lane.lane = engine_->make_lane(next_ordinal_++);
  lane.last_ticket =
      stream.enqueue_at_once(CollectiveTask(shared_from_this(), lane.lane.get(), call, stage));
}

void Communicator::number(device::Stream& stream, node::PointToPoint& call) {
  const std::lock_guard lock(lanes_lock_);
  const auto& lane = lane_of(stream).lane;
  engine_->number(call, lane ? lane->ordinal() + 1 : 0);
}

void Communicator::enqueue(device::Stream& stream, std::vector<node::PointToPoint> calls,
                           std::vector<SelfCopy> copies) {
  check_usable(stream);
  const std::lock_guard lock(lanes_lock_);
  StreamLane& lane = lane_of(stream);
  const node::StreamPlace place{lane.lane ? lane.lane->ordinal() : next_ordinal_, lane.lane.get()};
  const auto on_host = [](std::uint64_t address) { return !device::is_device_address(address); };
  const bool staged =
      std::ranges::any_of(calls, [](const auto& call) { return uses_host_memory(call); }) ||
      std::ranges::any_of(
          copies, [&](const SelfCopy& copy) { return on_host(copy.from) && on_host(copy.to); });
  const Stage* const stage = stage_of(lane, staged);
  lane.last_ticket = stream.enqueue_at_once(
      PointToPointTask(shared_from_this(), place, std::move(calls), std::move(copies), stage));
}

void Communicator::note_fault(hcclResult_t code, const char* what) {
  if (engine_) engine_->fail(code, what);
  log(LogLevel::info, "comm", "rank ", rank_, ": ", what);
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
  if (failed()) engine_->fault().throw_error();
}

void Communicator::leave() {
  if (engine_) engine_->depart();
  bootstrap::retire_unique_id(id_);
  watches_.clear();
}

void Communicator::fail(const char* call) {
  if (engine_)
    engine_->fault().raise(hcclSystemError, text(engine_->rank_text(rank_), " called ", call));
}

hcclResult_t Communicator::async_error() const {
  return failed() ? engine_->fault().code() : hcclSuccess;
}

const char* Communicator::async_error_text() {
  if (!failed()) return nullptr;
  std::call_once(error_text_once_, [this] { error_text_ = engine_->fault().text(); });
  return error_text_.c_str();
}

}  // namespace hccl::comm
