// SPDX-License-Identifier: Apache-2.0
// The path of larger operations: when all ranks have arrived one opens, then whichever ranks run
// claim tiles for everybody. Failing is one compare-and-swap of the state word; a claimer says
// which tile it is inside before it looks at the state once more, so a rank that leaves a failed
// operation knows whom to wait for.
#include "base/error.h"
#include "base/text.h"
#include "node/waiting.h"
#include "reduce/reduce.h"

#include <array>
#include <chrono>
#include <cstring>

#include <sched.h>

namespace hccl::node {
namespace {

// What tiles read where nobody ever wrote: one page of zeros for all, so holes stay holes.
alignas(4096) const std::byte kZeros[TilePlan::kLongestTile]{};

#ifdef HCCL_TEST_RELAXED_TILE_DONE
constexpr auto kTileDone =
    std::memory_order_relaxed;  // wrong on purpose: the race detector must see it
#else
constexpr auto kTileDone = std::memory_order_acq_rel;
#endif

}  // namespace

void Engine::run_cooperative(Operation& op) {
  Lane& lane = op.lane;
  std::atomic<std::uint32_t>& state = lane.block().state;
  const std::uint32_t gathering = lane.state_word(LaneBlock::gathering);
  const std::uint32_t open = lane.state_word(LaneBlock::open);
  op.plan.emplace(op.call, size_, cores_.cores);
  if (lane.brought(op.number)) {
    const Slot& mine = lane.slot(rank_);
    op.send = {mine.send_offset, mine.send_serial};
    op.recv = {mine.recv_offset, mine.recv_serial};
  } else {
    bring(op);
  }
  Everybody everybody(lane, size_);
  if (state.load(std::memory_order_acquire) == gathering) {
    if (!everybody.arrived()) {
      bring_ahead(op);
      wait(op, [&] {
        return state.load(std::memory_order_acquire) != gathering || everybody.arrived();
      });
    }
    if (everybody.arrived()) open_operation(op);
  }
  if (state.load(std::memory_order_acquire) == open) {
    try {
      work(op);
    } catch (const Error& error) {  // no memory or no address space: peers must not wait, and we
                                    // must leave in order
      op.lane.inside(rank_).tile.store(0, std::memory_order_release);
      fault_.raise(error.code(), text(rank_text(rank_), ": ", error.what()));
    }
    if (state.load(std::memory_order_acquire) == open) {
      bring_ahead(op);
      wait(op, [&] { return state.load(std::memory_order_acquire) != open; });
    }
  }
  if (!lane.complete()) {
    // Nobody has been inside a later one that this rank had brought its part to.
    if (state.load(std::memory_order_acquire) == lane.state_word(LaneBlock::failed)) leave(op);
    fault_.throw_error();
  }
  if (op.recv_bytes != 0) arena_.bring_after(op.call.recv, op.recv, op.recv_bytes);
}

void Engine::open_operation(Operation& op) {
  LaneBlock& block = op.lane.block();
  if (!descriptors_agree(op)) {
    fault_.raise(hcclInvalidUsage, mismatch_text(op));
    return;
  }
  std::uint32_t expected = op.lane.state_word(LaneBlock::gathering);
  if (!block.state.compare_exchange_strong(expected, op.lane.state_word(LaneBlock::open),
                                           std::memory_order_seq_cst)) {
    return;  // another rank was first, or the operation has failed
  }
  // Helpers beyond the cores would only take turns; all are woken at completion.
  if (op.plan->tiles() > 1 && cores_.cores > 1) block.bell.ring(cores_.cores - 1);
}

void Engine::work(Operation& op) {
  LaneBlock& block = op.lane.block();
  if (!map_peers(op)) return;
  while (const auto number = claim_tile(op)) {
    run_tile(op, *number);
    op.lane.inside(rank_).tile.store(0, std::memory_order_release);
    if (block.tiles_done.fetch_add(1, kTileDone) + 1 != op.plan->tiles()) continue;
    const std::uint32_t next = op.lane.cooperative_number() + 1;
    block.tiles_done.store(0, std::memory_order_relaxed);
    block.next_tile.store(std::uint64_t{next} << 32, std::memory_order_relaxed);
    std::uint32_t expected = op.lane.state_word(LaneBlock::open);
    block.state.compare_exchange_strong(expected, LaneBlock::state_of(next, LaneBlock::gathering),
                                        std::memory_order_seq_cst);
    block.bell.ring();
    return;
  }
}

// A tile of this operation, if there is one left and the operation has not failed.
std::optional<std::uint32_t> Engine::claim_tile(Operation& op) const {
  LaneBlock& block = op.lane.block();
  const std::uint64_t first = std::uint64_t{op.lane.cooperative_number()} << 32;
  // Compared and swapped: adding might take a tile from an operation to come, which others have
  // opened since this rank last had a processor.
  std::uint64_t next = block.next_tile.load(std::memory_order_relaxed);
  do {
    if (next - first >= op.plan->tiles()) return std::nullopt;
  } while (!block.next_tile.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
  const auto number = static_cast<std::uint32_t>(next);
  InsideRecord& inside = op.lane.inside(rank_);
  // Both sequentially consistent: either a leaver sees us inside or we see that the operation has
  // failed.
  inside.tile.store(number + 1, std::memory_order_seq_cst);
  if (block.state.load(std::memory_order_seq_cst) == op.lane.state_word(LaneBlock::open))
    return number;
  inside.tile.store(0, std::memory_order_release);
  return std::nullopt;
}

// Calls visit(memory, offset, bytes, write) for the buffers of every peer that this operation may
// touch, until it returns false. Returns whether it never did.
template <class Visit>
bool Engine::for_peer_buffers(const Operation& op, Visit visit) {
  const std::uint64_t recv_bytes = node::recv_bytes(op.call, size_);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const Slot& slot = op.lane.slot(rank);
    device::ArenaView& memory = *peers_[static_cast<std::size_t>(rank)].memory;
    if (receives(op.call, rank) &&
        !visit(memory, slot.recv_offset, recv_bytes, slot.recv_serial, true))
      return false;
    const bool is_data = slot.content == static_cast<std::uint8_t>(device::Content::data);
    if (sends(op.call, rank) && is_data &&
        !visit(memory, slot.send_offset, op.part_bytes, slot.send_serial, false))
      return false;
  }
  return true;
}

// Without page tables filled in advance, tiles of reused buffers take page faults for hundreds of
// calls, until every process has met every page. So buffers seen for the second time are mapped as
// a whole; those seen for the first time only tile by tile, because most processes will never touch
// most of their pages. False: the operation ended meanwhile.
bool Engine::map_peers(Operation& op) {
  op.mapped = for_peer_buffers(op, [](device::ArenaView& memory, std::uint64_t offset,
                                      std::uint64_t bytes, std::uint32_t serial, bool) {
    memory.follow(offset, bytes, serial);
    return memory.populated(offset, bytes);
  });
  const device::Placement& own = op.recv_bytes != 0 ? op.recv : op.send;
  if (op.mapped || !op.lane.seen_before(own.file_offset, own.serial)) return true;
  const std::uint32_t open = op.lane.state_word(LaneBlock::open);
  op.mapped = for_peer_buffers(op, [&](device::ArenaView& memory, std::uint64_t offset,
                                       std::uint64_t bytes, std::uint32_t serial, bool write) {
    memory.follow(offset, bytes, serial);
    std::uint64_t position = 0;
    while (!memory.populate_slice(offset, bytes, write, &position)) {
      if (op.lane.block().state.load(std::memory_order_acquire) != open) return false;
    }
    return true;
  });
  return op.mapped;
}

// Measured: up to here plain stores still find enough of their lines in the caches.
reduce::StorePolicy Engine::store_policy(const Operation& op) const {
  const std::uint64_t bytes = op.part_bytes + node::recv_bytes(op.call, size_);
  return bytes * static_cast<std::uint64_t>(size_) > cache_bytes_ / 2 * 3
             ? reduce::StorePolicy::streaming
             : reduce::StorePolicy::cached;
}

const std::byte* Engine::source(const Operation& op, int rank, std::uint64_t offset,
                                std::uint64_t bytes) {
  const Slot& slot = op.lane.slot(rank);
  return readable(rank, slot.send_offset + offset, bytes,
                  static_cast<device::Content>(slot.content), op.mapped);
}

// At most kLongestTile bytes of a rank's memory whose `content` the rank has told; `mapped` if all
// of it is in this process's page tables.
const std::byte* Engine::readable(int rank, std::uint64_t at, std::uint64_t bytes,
                                  device::Content content, bool mapped) {
  device::ArenaView& memory = *peers_[static_cast<std::size_t>(rank)].memory;
  if (content == device::Content::hole) return kZeros;
  if (content == device::Content::mixed && memory.content(at, bytes) == device::Content::hole)
    return kZeros;
  if (!mapped) memory.populate(at, bytes, false);
  return memory.at(at);
}

std::byte* Engine::destination(const Operation& op, int rank, std::uint64_t offset,
                               std::uint64_t bytes) {
  device::ArenaView& memory = *peers_[static_cast<std::size_t>(rank)].memory;
  const std::uint64_t at = op.lane.slot(rank).recv_offset + offset;
  if (!op.mapped) memory.populate(at, bytes, true);
  return memory.at(at);
}

void Engine::run_tile(Operation& op, std::uint32_t number) {
  if (op.call.collective == Collective::all_to_all) return exchange_tile(op, op.plan->tile(number));
  const Tile tile = op.plan->tile(number);
  const std::uint64_t in_chunks =
      static_cast<std::uint64_t>(tile.chunk) * op.plan->chunk_bytes() + tile.first_byte;
  std::array<const std::byte*, kMostRanks> sources;
  std::array<std::byte*, kMostRanks> destinations;
  std::size_t source_count = 0;
  std::size_t destination_count = 0;
  const auto from = [&](int rank, std::uint64_t offset) {
    sources[source_count++] = source(op, rank, offset, tile.bytes);
  };
  const auto to = [&](int rank, std::uint64_t offset) {
    destinations[destination_count++] = destination(op, rank, offset, tile.bytes);
  };
  switch (op.call.collective) {
    case Collective::barrier:
    case Collective::all_to_all:
      return;
    case Collective::all_reduce:
      for (int rank = 0; rank < size_; ++rank) {
        from(rank, tile.first_byte);
        to(rank, tile.first_byte);
      }
      break;
    case Collective::reduce:
      for (int rank = 0; rank < size_; ++rank) from(rank, tile.first_byte);
      to(op.call.root, tile.first_byte);
      break;
    case Collective::reduce_scatter:
      for (int rank = 0; rank < size_; ++rank) from(rank, in_chunks);
      to(tile.chunk, tile.first_byte);
      break;
    case Collective::broadcast:
      from(op.call.root, tile.first_byte);
      for (int rank = 0; rank < size_; ++rank) to(rank, tile.first_byte);
      break;
    case Collective::all_gather:
      from(tile.chunk, tile.first_byte);
      for (int rank = 0; rank < size_; ++rank) to(rank, in_chunks);
      break;
  }
  if (source_count == 1) {
    reduce::copy_tile(sources[0], {destinations.data(), destination_count}, tile.bytes,
                      store_policy(op));
  } else {
    reduce::reduce_tile(op.call.data_type(), op.call.reduction(), {sources.data(), source_count},
                        {destinations.data(), destination_count},
                        tile.bytes / reduce::element_size(op.call.data_type()), store_policy(op));
  }
}

// Both directions of a pair at once: in place, each part lies where the other has to go.
void Engine::exchange_tile(Operation& op, const Tile& tile) {
  alignas(64) thread_local std::array<std::byte, TilePlan::kLongestTile> aside;
  const auto policy = store_policy(op);
  const auto part = [&](int rank) {
    return static_cast<std::uint64_t>(rank) * op.plan->chunk_bytes() + tile.first_byte;
  };
  const int rank = tile.chunk;
  for (int peer = tile.first_peer; peer < tile.end_peer; ++peer) {
    const std::byte* const outgoing = source(op, rank, part(peer), tile.bytes);
    std::byte* const at_peer = destination(op, peer, part(rank), tile.bytes);
    if (peer == rank) {
      if (outgoing != at_peer) reduce::copy_tile(outgoing, {&at_peer, 1}, tile.bytes, policy);
      continue;
    }
    const std::byte* const incoming = source(op, peer, part(rank), tile.bytes);
    std::byte* const at_rank = destination(op, rank, part(peer), tile.bytes);
    if (incoming != at_peer) {
      reduce::copy_tile(outgoing, {&at_peer, 1}, tile.bytes, policy);
      reduce::copy_tile(incoming, {&at_rank, 1}, tile.bytes, policy);
    } else {
      std::memcpy(aside.data(), incoming, tile.bytes);
      reduce::copy_tile(outgoing, {&at_peer, 1}, tile.bytes, policy);
      std::memcpy(at_rank, aside.data(), tile.bytes);
    }
  }
}

// Returns when no living peer stores into this rank's memory any more. One that stays inside a tile
// (stopped by a signal) is left behind on the old pages: the allocations move to fresh ones.
void Engine::leave(const Operation& op) {
  const Deadline patience = Deadline::after(std::chrono::milliseconds(100));
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const auto& record = control_.header().records[rank];
    for (;;) {
      const std::uint32_t tile = op.lane.inside(rank).tile.load(std::memory_order_seq_cst);
      if (tile == 0 || !op.plan->stores_to(tile - 1, rank_)) break;
      if (record.presence.load(std::memory_order_seq_cst) == Presence::dead) break;
      if (patience.expired()) {
        arena_.move_to_fresh_pages({op.recv.file_offset, op.recv_bytes});
        return;
      }
      sched_yield();
    }
  }
}

}  // namespace hccl::node
