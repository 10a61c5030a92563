// SPDX-License-Identifier: Apache-2.0
// The life of an engine and of one operation.
#include "node/engine.h"

#include "base/error.h"
#include "base/text.h"
#include "node/operation.h"

namespace hccl::node {

Engine::Engine(std::shared_ptr<SharedSegment> control, std::vector<Peer> peers,
               device::Arena& arena, const EngineOptions& options)
    : segment_(std::move(control)),
      control_(segment_->data()),
      fault_(control_),
      peers_(std::move(peers)),
      arena_(arena),
      rank_(options.rank),
      size_(static_cast<int>(peers_.size())),
      cores_(options.cores),
      ladder_(options.cores.ladder()),
      mailboxes_(&control_.mailbox(0, 0)),
      next_send_(peers_.size()),
      next_receive_(peers_.size()),
      cache_bytes_(options.cache_bytes),
      wait_limit_(options.operation_timeout),
      hang_report_(options.hang_report) {}

std::string Engine::rank_text(int rank) const {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  return text("rank ", peer.number, " (pid ", peer.pid, ", host ", peer.host, ")");
}

bool Engine::execute(Lane& lane, const CollectiveCall& call, CallLookahead* ahead,
                     Staging* staging) {
  lane.attach();
  Operation op(lane, call, rank_, size_, lane.number(), staging);
  op.ahead = ahead;
  Turn turn(lane, op.eager());
  // Peers may have begun or completed an operation to which this rank has posted: it runs to its
  // end.
  if (fault_.raised() && !lane.posted(op.number)) fault_.throw_error();
  RankRecord& record = control_.header().records[rank_];
  record.in_operation.store(lane.ordinal() + 1, std::memory_order_relaxed);
  const bool ended = op.eager() ? run_eager(op) : run_cooperative(op);
  if (!ended) turn.leave();
  record.in_operation.store(0, std::memory_order_relaxed);
  if (op.waiting) record.host_is_waiting.store(0, std::memory_order_relaxed);
  return ended;
}

void Engine::fail(hcclResult_t code, const char* why) noexcept {
  if (fault_.raised()) return;
  fault_.raise_with(code, [&] { return text(rank_text(rank_), ": ", why); });
}

void Engine::rank_died(int rank) noexcept {
  RankRecord& record = control_.header().records[rank];
  Presence present = Presence::present;
  if (!record.presence.compare_exchange_strong(present, Presence::dead, std::memory_order_seq_cst))
    return;
  fault_.raise_with(hcclSystemError, [&] {
    return text(rank_text(rank),
                " has exited without hcclCommDestroy (crashed, killed or returned early); look at "
                "its output");
  });
}

void Engine::depart() {
  control_.header().records[rank_].presence.store(Presence::departed, std::memory_order_seq_cst);
  for (int rank = 0; rank < size_; ++rank) control_.header().records[rank].mail.ring();
  const std::uint32_t end = control_.header().lane_end.load(std::memory_order_seq_cst);
  for (std::uint32_t index = 0; index < end; ++index) {
    LaneBlock& lane = control_.lane(index);
    if (lane.key.load(std::memory_order_seq_cst) != 0) lane.bell.ring();
  }
}

}  // namespace hccl::node
