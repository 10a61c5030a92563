// SPDX-License-Identifier: Apache-2.0
#include "node/node_backend.h"

#include "base/text.h"
#include "node/host_staging.h"
#include "node/mailbox.h"
#include "node/pending_messages.h"
#include "node/stream_place.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace hccl::node {
namespace {

constexpr std::chrono::milliseconds kLook{500};  // longest sleep; some events ring no doorbell

}  // namespace

class NodeBackend::NodeStream final : public BackendStream {
 public:
  explicit NodeStream(NodeBackend& backend) : backend_(backend) {}

  void begin_collectives(std::uint32_t ordinal) override {
    lane_ = backend_.segment_->make_lane(ordinal);
  }

  void number(PointToPoint& call) override {
    if (!pending_) pending_ = std::make_shared<PendingMessages>(reuse_of_ring());
    backend_.engine_.mailboxes().number(call, lane_ ? lane_->ordinal() + 1 : 0);
  }

  bool run(const CollectiveCall& call, std::uint64_t staging, CallLookahead& ahead) override {
    if (staging == 0) return backend_.engine_.execute(*lane_, call, &ahead);
    if (ahead.wait_budget() != WaitBudget::unlimited) return false;
    HostStaging staged(backend_.segment_->arena(), staging, call, backend_.segment_->rank(),
                       backend_.segment_->size());
    return backend_.engine_.execute(*lane_, staged.staged_call(), &ahead, &staged);
  }

  bool exchange(std::span<const PointToPoint> calls, const MessagePlace& place,
                std::uint64_t staging, GroupLookahead& ahead) override {
    if (staging != 0 && ahead.wait_budget() != WaitBudget::unlimited) return false;
    // Keeps the address, because groups on host memory may be pending while a group on device
    // memory runs.
    if (staging != 0) message_staging_ = staging;
    const StreamPlace at{place.ordinal, place.has_collectives ? lane_.get() : nullptr,
                         pending_.get()};
    return backend_.engine_.exchange(at, calls, ahead, message_staging_);
  }

  [[nodiscard]] bool release_staging() const noexcept {
    return lane_ == nullptr || lane_->await_release_of_staging(backend_.failed());
  }

 private:
  // If each rank has a core, the message ring is reused as late as possible: a store to a line that
  // is still in the receiver's cache can take several times as long as one to a line that has left
  // that cache. If ranks share cores, a smaller part of the ring is more likely to be in their
  // cache.
  [[nodiscard]] StagingRing::Reuse reuse_of_ring() const {
    return backend_.segment_->cores().exclusive ? StagingRing::Reuse::late
                                                : StagingRing::Reuse::early;
  }

  NodeBackend& backend_;
  std::unique_ptr<Lane> lane_;                // null before the first collective
  std::shared_ptr<PendingMessages> pending_;  // null before the first message
  std::uint64_t message_staging_ = 0;         // the staging buffer; 0 before the first use
};

NodeBackend::NodeBackend(std::shared_ptr<NodeSegment> segment, const EngineOptions& options)
    : segment_(std::move(segment)), engine_(*segment_, options) {}

NodeBackend::~NodeBackend() = default;

BackendStream& NodeBackend::open_stream(std::uint64_t /*stream*/) {
  const std::lock_guard lock(streams_mutex_);
  return *streams_.emplace_back(std::make_unique<NodeStream>(*this));
}

void NodeBackend::close_stream(BackendStream& stream) noexcept {
  std::unique_ptr<NodeStream>
      closed;  // destroyed without the lock: its destruction may wait for other ranks
  const std::lock_guard lock(streams_mutex_);
  const auto found = std::ranges::find(
      streams_, &stream, [](const auto& open) -> BackendStream* { return open.get(); });
  closed = std::move(*found);
  streams_.erase(found);
}

bool NodeBackend::release_staging(BackendStream& stream) noexcept {
  return dynamic_cast<NodeStream&>(stream).release_staging();
}

bool NodeBackend::needs_staging(const CollectiveCall& call) const {
  return node::needs_staging(call, segment_->rank(), segment_->size());
}

bool NodeBackend::needs_staging(const PointToPoint& call) const { return uses_host_memory(call); }

AsyncError NodeBackend::async_error() const {
  if (!failed()) return {};
  return {segment_->fault().code(), segment_->fault().text()};
}

std::optional<Offer> NodeBackend::probe(int first, bool only_looks, Deadline deadline,
                                        SpinLock& queueing) {
  std::optional<Offer> found;
  const auto look = [&] {
    const std::lock_guard lock(queueing);  // keeps number() from assigning the message
    found = engine_.mailboxes().find_offer(first);
    return found.has_value();
  };
  Waiter waiter(segment_->ladder());
  while (!look() && !only_looks && !deadline.expired()) {
    throw_if_failed();
    if (waiter.poll_again()) continue;
    engine_.mailboxes().await_mail(deadline.remaining(kLook), look);
    if (found) break;
    waiter = Waiter(segment_->ladder());
  }
  return found;
}

TrafficReport NodeBackend::traffic(std::optional<int> /*peer*/) const {
  return {"node", "memory", 0, 0, 0, 0};
}

PlanSteps NodeBackend::plan_of(const PlanRequest& request) const {
  return {"node", "memory",
          request.as_json ? ""
                          : "all ranks compute the result together in shared memory; set HCCL_ALGO "
                            "or HCCL_TRANSPORT to use a schedule instead\n"};
}

CallPath NodeBackend::path_of(const CollectiveCall& call) const {
  const int ranks = segment_->size();
  const bool eager = Engine::is_eager(call, ranks);
  CallPath path{
      eager ? "eager" : "cooperative",
      text("the ", send_bytes(call, ranks), "-byte input ",
           eager ? "fits into a " : "is larger than a ", Slot::kPayloadBytes, "-byte slot")};
  if (!needs_staging(call)) return path;
  if (uses_only_host_memory(call, segment_->rank(), ranks) &&
      fits_host_payload(send_bytes(call, ranks), ranks)) {
    return {"eager", text("the ", send_bytes(call, ranks),
                          "-byte input fits into the slot's host payload; if another rank uses "
                          "device memory, the call takes another path")};
  }
  return {
      "host staging",
      call.traits().reduces
          ? "peers cannot map host memory, and " + path.reason
          : "peers cannot map host memory; they copy large blocks directly from this process if "
            "the system permits it"};
}

CallPath NodeBackend::path_of(const PointToPoint& call) const {
  if (call.bytes() <= Message::kPayloadBytes) {
    return {"mailbox", text("the ", call.bytes(), "-byte message fits into the ",
                            Message::kPayloadBytes, "-byte mailbox")};
  }
  if (needs_staging(call)) {
    return {"host staging",
            "peers cannot map host memory; a receiver copies a long message directly from the "
            "sender's process if the system permits it"};
  }
  return {"copy by the receiver", text("the ", call.bytes(), "-byte message is larger than the ",
                                       Message::kPayloadBytes, "-byte mailbox")};
}

}  // namespace hccl::node
