// SPDX-License-Identifier: Apache-2.0
// The life of one operation, and the path of small ones: every rank puts its data into its slot and
// computes its own result from all slots.
#include "node/engine.h"

#include "base/error.h"
#include "base/text.h"
#include "device/copy.h"
#include "node/waiting.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

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
      ladder_(options.cores.exclusive ? WaitLadder::spinning() : WaitLadder::yielding()),
      cache_bytes_(options.cache_bytes),
      operation_timeout_(options.operation_timeout),
      hang_report_(options.hang_report) {}

std::string Engine::rank_text(int rank) const {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  return text("rank ", rank, " (pid ", peer.pid, ", host ", peer.host, ")");
}

void Engine::execute(Lane& lane, const CollectiveCall& call) {
  lane.attach();
  if (fault_.raised()) fault_.throw_error();
  Operation op(lane, call, size_);
  RankRecord& record = control_.header().records[rank_];
  record.in_operation.store(lane.ordinal() + 1, std::memory_order_relaxed);
  if (op.send_bytes != 0) op.send = arena_.place(call.send);
  if (op.recv_bytes != 0) op.recv = arena_.place(call.recv);
  if (op.eager()) {
    run_eager(op);
  } else {
    run_cooperative(op);
  }
  record.in_operation.store(0, std::memory_order_relaxed);
}

void Engine::publish(Operation& op) {
  Slot& slot = op.lane.slot(rank_);
  slot.collective = static_cast<std::uint8_t>(op.call.collective);
  slot.type = op.call.type;
  slot.operation = op.call.operation;
  slot.content = static_cast<std::uint8_t>(op.content);
  slot.root = op.call.root;
  slot.count = op.call.count;
  slot.send_offset = op.send.file_offset;
  slot.recv_offset = op.recv.file_offset;
  slot.send_serial = op.send.serial;
  slot.recv_serial = op.recv.serial;
  // Sequentially consistent, like the sleepers' registration: either they see the number or we see
  // them.
  slot.number.store(op.lane.number(), std::memory_order_seq_cst);
}

bool Engine::all_arrived(const Lane& lane) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!lane.arrived(rank)) return false;
  }
  return true;
}

// Copies what this rank sends, allocating nothing where it is a hole.
void Engine::load_source(Operation& op, std::byte* payload) {
  device::ArenaView& memory = *arena_.view();
  settle_source(op);
  if (op.content == device::Content::data) {
    std::memcpy(payload, memory.at(op.send.file_offset), op.send_bytes);
  } else {
    device::copy_to_host(arena_, payload, op.call.send, op.send_bytes);
  }
}

void Engine::run_eager(Operation& op) {
  Lane& lane = op.lane;
  const bool sends =
      op.send_bytes != 0 && (op.call.collective != Collective::broadcast || op.call.root == rank_);
  if (sends) {
    load_source(op, lane.slot(rank_).payload);
  }
  publish(op);
  if (lane.block().bell.has_sleepers() && all_arrived(lane)) lane.block().bell.ring_always();

  int next = 0;
  const auto everybody = [&] {
    while (next < size_ && lane.arrived(next)) ++next;
    return next == size_;
  };
  wait(op, [&] { return everybody() || lane.failed(); });
  if (!everybody()) fault_.throw_error();
  if (!descriptors_agree(op)) {
    fault_.raise(hcclInvalidUsage, mismatch_text(op));
    fault_.throw_error();
  }
  if (op.recv_bytes != 0) store_eager_result(op);
  lane.finish_eager();
}

void Engine::store_eager_result(const Operation& op) {
  device::ArenaView& memory = *arena_.view();
  if (!memory.populated(op.recv.file_offset, op.recv_bytes))
    memory.populate(op.recv.file_offset, op.recv_bytes, true);
  std::byte* destination = memory.at(op.recv.file_offset);
  std::array<const std::byte*, kMostRanks> payloads;
  for (int rank = 0; rank < size_; ++rank) {
    payloads[static_cast<std::size_t>(rank)] = op.lane.slot(rank).payload;
  }
  const std::span<const std::byte*> sources(payloads.data(), static_cast<std::size_t>(size_));
  switch (op.call.collective) {
    case Collective::barrier:
      break;
    case Collective::broadcast:
      std::memcpy(destination, sources[static_cast<std::size_t>(op.call.root)], op.recv_bytes);
      break;
    case Collective::all_gather:
      for (std::size_t rank = 0; rank < sources.size(); ++rank) {
        std::memcpy(destination + rank * op.send_bytes, sources[rank], op.send_bytes);
      }
      break;
    case Collective::reduce_scatter:
      for (const std::byte*& source : sources)
        source += static_cast<std::size_t>(rank_) * op.recv_bytes;
      [[fallthrough]];
    case Collective::all_reduce:
      reduce::reduce_tile(op.call.data_type(), op.call.reduction(), sources, {&destination, 1},
                          op.call.count, reduce::StorePolicy::cached);
  }
}

void Engine::fail(hcclResult_t code, const char* why) {
  if (!fault_.raised()) fault_.raise(code, text(rank_text(rank_), ": ", why));
}

void Engine::rank_died(int rank) {
  RankRecord& record = control_.header().records[rank];
  Presence present = Presence::present;
  if (!record.presence.compare_exchange_strong(present, Presence::dead, std::memory_order_seq_cst))
    return;
  fault_.raise(hcclSystemError,
               text(rank_text(rank),
                    " has exited without hcclCommDestroy (crashed, killed or returned "
                    "early); look at its output"));
}

void Engine::depart() {
  control_.header().records[rank_].presence.store(Presence::departed, std::memory_order_seq_cst);
  const std::uint32_t end = control_.header().lane_end.load(std::memory_order_seq_cst);
  for (std::uint32_t index = 0; index < end; ++index) {
    LaneBlock& lane = control_.lane(index);
    if (lane.key.load(std::memory_order_seq_cst) != 0) lane.bell.ring();
  }
}

}  // namespace hccl::node
