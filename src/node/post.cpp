// SPDX-License-Identifier: Apache-2.0
// A rank posts a slot by storing the slot's number after all other fields.
#include "node/post.h"

#include "device/host_memory.h"
#include "node/address_range.h"
#include "node/rank_memory.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

namespace hccl::node {
namespace {

void publish(const NodeSegment& node, const CollectiveOperation& op) {
  Slot& slot = op.lane.slot(op.number, node.rank());
  const CollectiveCall& call = program_call(op.call);
  slot.collective = static_cast<std::uint8_t>(call.collective);
  slot.type = call.type;
  slot.operation = call.operation;
  slot.memory = pack_memory({.content = static_cast<std::uint8_t>(op.content),
                             .continues = op.continues,
                             .reads_peers = op.reads_peers,
                             .send_is_staged = op.stages_send(),
                             .recv_is_staged = op.stages_recv(),
                             .mapping = op.mapping});
  if (op.staging != nullptr && !op.eager()) slot.host_input() = op.host_call().send;
  slot.root = call.root;
  slot.count = call.count;
  slot.send_offset = op.send.file_offset;
  slot.recv_offset = op.recv.file_offset;
  slot.send_serial = op.send.serial;
  slot.recv_serial = op.recv.serial;
  // The first slice of a staged operation becomes ready when the staging buffer has been filled.
  slot.slice.store(op.staging != nullptr && !op.eager() ? 0 : 1, std::memory_order_relaxed);
  // Sequentially consistent, like the sleepers' registration: either the sleepers see the number,
  // or this rank sees the sleepers.
  slot.number.store(op.number, std::memory_order_seq_cst);
  op.lane.set_posted(op.number);
}

// Prefetches the slot of a later operation, so that posting that operation seldom waits for cache
// lines that peers have read. Assumes that the later operation sends as much data as `op`. With two
// ranks, operations took a fifth to a third less time. With eight ranks on 16 cores, operations of
// 1 KiB took a tenth longer; kMaxRanksWithGain lies in between. A peer that is far behind may still
// read the slot, which does no harm.
void prefetch_later_slot(const NodeSegment& node, const CollectiveOperation& op) {
  constexpr std::uint32_t kDistance = 4;
  constexpr int kMaxRanksWithGain = 4;
  if (node.cores().exclusive && node.size() > kMaxRanksWithGain) return;
  const Slot& later = op.lane.slot(op.number + kDistance, node.rank());
  reduce::prefetch_for_stores(reinterpret_cast<const std::byte*>(&later),
                              Slot::kHeaderBytes + (op.continues ? 0 : op.send_bytes));
}

// Returns whether `op` can be posted without mapping pages, and its host memory can be read.
// Otherwise posting may fail, and the current operation would report the error of a later one.
bool is_in_page_tables(const NodeSegment& node, const CollectiveOperation& op) {
  device::Arena& arena = node.arena();
  const device::ArenaView& memory = *arena.view();
  const auto populated = [&](std::uint64_t address, std::uint64_t bytes) {
    if (bytes == 0) return true;
    if (!device::is_device_address(address))
      return device::has_host_access(address, bytes, device::HostAccess::read);
    return memory.populated(arena.locate(address).file_offset, bytes);
  };
  return populated(op.host_call().send, op.send_bytes) &&
         (op.eager() || populated(op.call.recv, op.recv_bytes));
}

// The memory to which an operation writes its result. `is_known_to_all`: every rank computes the
// same result and keeps it in Lane::last_result().
struct Result {
  AddressRange range;
  bool is_known_to_all;
};

Result result_of(const CollectiveCall& call, const NodeSegment& node) {
  const int ranks = node.size();
  const bool is_eager_all_reduce = call.collective == Collective::all_reduce &&
                                   call.whole == nullptr &&
                                   send_bytes(call, ranks) <= Slot::kPayloadBytes;
  return {{call.recv, receives(call, node.rank()) ? recv_bytes(call, ranks) : 0},
          is_eager_all_reduce};
}

// Returns whether `next` may be posted ahead of its turn, while `op` runs. `unfinished`: the
// results of `op` and of the operations between `op` and `next`.
bool can_prepost(const NodeSegment& node, const CollectiveOperation& op,
                 const CollectiveOperation& next, std::span<const AddressRange> unfinished) {
  if (next.posts_data() != op.posts_data()) return false;
  if (next.staging != nullptr && !next.posts_data()) return false;
  if (!is_in_page_tables(node, next)) return false;
  const CollectiveCall& call = next.host_call();
  // Another process may still write to the call's host memory until that process enters the
  // barrier.
  if (op.call.collective == Collective::barrier && uses_host_memory(call, node.rank(), node.size()))
    return false;
  if (!next.posts_data()) return true;
  if (next.writes_result(node.rank()) && !device::is_device_address(call.recv) &&
      !device::has_host_access(call.recv, next.recv_bytes, device::HostAccess::write))
    return false;
  if (next.continues) return true;
  const AddressRange source{call.send, next.send_bytes};
  const bool knows_views = node.arena().recognises_views();
  return std::ranges::none_of(unfinished, [&](const AddressRange& result) {
    const bool may_be_view = !knows_views && device::is_device_address(result.first) !=
                                                 device::is_device_address(source.first);
    return result.overlaps(source) || (may_be_view && result.bytes != 0 && source.bytes != 0);
  });
}

}  // namespace

void post(NodeSegment& node, CollectiveOperation& op) {
  device::Arena& arena = node.arena();
  if (op.eager()) {  // publishes no addresses: peers access only the slot
    prefetch_later_slot(node, op);
    if (op.send_bytes != 0 && !op.continues) {
      op.content =
          load(arena, op.call.send, op.send_bytes, op.lane.slot(op.number, node.rank()).payload);
    }
  } else {
    if (op.short_on_host && op.send_bytes != 0) {
      load(arena, op.host_call().send, op.send_bytes, op.lane.host_payload(op.number, node.rank()));
    }
    if (op.recv_bytes != 0) {
      op.recv = arena.locate(op.call.recv);
      arena.view()->populate(op.recv.file_offset, op.recv_bytes, true);
    }
    if (op.send_bytes != 0) {
      op.send = arena.locate(op.call.send);
      // A staging buffer is filled after the post, so its content is always posted as data.
      if (!op.stages_send())
        op.content = resolve_content(arena, op.send.file_offset, op.send_bytes);
    }
    op.mapping = op.lane.use_buffers(op.send, op.recv, std::max(op.send_bytes, op.recv_bytes));
  }
  publish(node, op);
}

void ring_if_all_posted(const NodeSegment& node, const CollectiveOperation& op) {
  Doorbell& bell = op.lane.block().bell;
  if (!bell.has_sleepers()) return;
  for (int rank = 0; rank < node.size(); ++rank) {
    if (!op.lane.has_posted(rank, op.number)) return;
  }
  bell.ring_always();
}

// Stops at the first call that cannot be posted ahead. Examples are a barrier, a call on a
// different path from `op`, a call whose pages are not mapped, and an eager call whose input
// overlaps the result of an unfinished operation (see also can_prepost()). The input of an eager
// call is read when the call is posted, so it must be complete by then, unless the call `continues`
// the operation before it. A cooperative call accesses memory only after all earlier operations are
// complete.
void prepost(NodeSegment& node, CollectiveOperation& op) {
  if (op.ahead == nullptr || op.looked_ahead || op.lane.posted(op.number + kMaxAhead / 2)) return;
  // After a fault, ranks also advance past operations that are not complete. Peers may still read
  // the slots of these operations, so no slot may be reused.
  if (node.fault().raised()) return;
  op.looked_ahead = true;
  std::array<AddressRange, kMaxAhead> unfinished;
  Result previous = result_of(op.host_call(), node);
  for (std::uint32_t distance = 1; distance <= kMaxAhead; ++distance) {
    unfinished[distance - 1] = previous.range;
    const CollectiveCall* const call = op.ahead->next();
    if (call == nullptr || call->collective == Collective::barrier) return;
    const Result result = result_of(*call, node);
    // True if the call's input is exactly the result of the call before it, so that this rank need
    // not post that input.
    const bool continues = previous.is_known_to_all && result.is_known_to_all &&
                           call->send == previous.range.first &&
                           result.range.bytes == previous.range.bytes;
    previous = result;
    if (op.lane.posted(op.number + distance)) continue;
    std::optional<HostStaging> staging;
    if (needs_staging(*call, node.rank(), node.size())) {
      if (op.staging == nullptr) return;
      staging.emplace(node.arena(), op.staging->buffer(), *call, node.rank(), node.size());
    }
    CollectiveOperation next(op.lane, staging ? staging->staged_call() : *call, node.rank(),
                             node.size(), op.number + distance, staging ? &*staging : nullptr);
    next.continues = continues;
    if (!can_prepost(node, op, next, {unfinished.data(), distance})) return;
    post(node, next);
    ring_if_all_posted(node, next);
  }
}

}  // namespace hccl::node
