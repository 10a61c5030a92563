// SPDX-License-Identifier: Apache-2.0
// A rank first publishes the tile that it has claimed, and then checks the operation's state again.
// A rank that leaves a failed operation can therefore see which peers it must wait for.
#include "node/tile_runner.h"

#include "base/error.h"
#include "node/rank_memory.h"
#include "node/tile_claims.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>

#include <sched.h>

namespace hccl::node {
namespace {

#ifdef HCCL_TEST_RELAXED_TILE_DONE
constexpr auto kTileDone =
    std::memory_order_relaxed;  // wrong on purpose: the race detector must report it
#else
constexpr auto kTileDone = std::memory_order_acq_rel;
#endif

constexpr int kTilesPerCore = 2;  // leaves work for a core that starts late

}  // namespace

void TileRunner::plan_slice() {
  const int parts = op_.has_shares ? node_.size() : node_.cores().cores * kTilesPerCore;
  plan_.emplace(op_.call, node_.size(), parts, op_.slice().bytes);
}

void TileRunner::run() {
  LaneBlock& block = op_.lane.block();
  try {
    if (!map_peers()) return;
    store_policy_ = choose_store_policy();
    while (const auto number = op_.has_shares ? next_tile() : claim_tile()) {
      run_tile(*number);
      leave_tile();
      if (op_.has_shares && next_ == end_) op_.lane.complete_share();
      if (block.tiles_done.fetch_add(1, kTileDone) + 1 == plan_->tiles()) return complete_slice();
    }
  } catch (const Error& error) {
    fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    fail(hcclOutOfMemory, "out of host memory; free memory or raise the process's memory limit");
  }
}

void TileRunner::fail(hcclResult_t code, const char* why) {
  leave_tile();
  node_.fail(code, why);
}

// Publishes that this rank no longer stores into other ranks' memory.
void TileRunner::leave_tile() const {
  op_.lane.current_tile(node_.rank()).store(0, std::memory_order_release);
}

void TileRunner::complete_slice() const {
  LaneBlock& block = op_.lane.block();
  const std::uint32_t next = op_.lane.cooperative_number() + 1;
  block.tiles_done.store(0, std::memory_order_relaxed);
  block.claimed.store(std::uint64_t{next} << 32, std::memory_order_relaxed);
  std::uint32_t expected = op_.lane.state_word(LaneBlock::open);
  block.state.compare_exchange_strong(expected, LaneBlock::state_of(next, LaneBlock::gathering),
                                      std::memory_order_seq_cst);
  block.bell.ring();
}

// Calls visit(memory, offset, bytes, serial) for each buffer of a peer that this operation may
// access, except send buffers with holes, until a call returns false. Returns whether all calls
// returned true.
template <class Visit>
bool TileRunner::all_peer_buffers(Visit visit) const {
  const int from_chunks = send_chunks(op_.call, node_.size());
  const int to_chunks = recv_chunks(op_.call, node_.size());
  for (int rank = 0; rank < node_.size(); ++rank) {
    if (rank == node_.rank()) continue;
    const Slot& slot = op_.lane.slot(rank);
    device::ArenaView& memory = node_.memory(rank);
    if (receives(op_.call, rank) &&
        !visit(memory, slot.recv_offset,
               op_.slicing.buffer_bytes(recv_is_staged(slot.memory), to_chunks), slot.recv_serial))
      return false;
    const bool is_data =
        content_in(slot.memory) == static_cast<std::uint8_t>(device::Content::data);
    if (sends(op_.call, rank) && is_data &&
        !visit(memory, slot.send_offset,
               op_.slicing.buffer_bytes(send_is_staged(slot.memory), from_chunks),
               slot.send_serial))
      return false;
  }
  return true;
}

// Maps all pages of all_peer_buffers(). Otherwise a reused buffer would cause page faults for
// hundreds of calls, until every process has accessed every page. Maps nothing in two cases: if
// each rank computes and maps only a fixed share of the tiles (Mapping::by_shares), or if this rank
// uses its own small buffers for the first time (Mapping::unused), because most processes never
// access most pages of a buffer that is used only once. With shares, also determines this rank's
// share. Returns false if the operation ends before all buffers are mapped.
bool TileRunner::map_peers() {
  mapped_ = true;
  static_cast<void>(all_peer_buffers([&](device::ArenaView& memory, std::uint64_t offset,
                                         std::uint64_t bytes, std::uint32_t serial) {
    memory.follow(offset, bytes, serial);
    mapped_ &= memory.populated(offset, bytes);
    return true;
  }));
  if (op_.has_shares) {
    const auto rank = static_cast<std::uint64_t>(node_.rank());
    const auto ranks = static_cast<std::uint64_t>(node_.size());
    next_ = static_cast<std::uint32_t>(rank * plan_->tiles() / ranks);
    end_ = static_cast<std::uint32_t>((rank + 1) * plan_->tiles() / ranks);
    if (op_.lane.has_computed_share(node_.rank())) next_ = end_;  // in an earlier run
  }
  if (mapped_ || op_.has_shares || op_.mapping == Mapping::unused) return true;
  const std::uint32_t open = op_.lane.state_word(LaneBlock::open);
  mapped_ = all_peer_buffers([&](device::ArenaView& memory, std::uint64_t offset,
                                 std::uint64_t bytes, std::uint32_t serial) {
    memory.follow(offset, bytes, serial);
    std::uint64_t position = 0;
    while (!memory.populate_slice(offset, bytes, false, &position)) {
      if (op_.lane.block().state.load(std::memory_order_acquire) != open) return false;
    }
    return true;
  });
  return mapped_;
}

// Claims a tile of this operation. Returns nothing if no tile is left or the operation has failed.
std::optional<std::uint32_t> TileRunner::claim_tile() const {
  LaneBlock& block = op_.lane.block();
  // A worker stands for a core, because caches belong to cores. If every rank has a core of its
  // own, the worker is the rank: the rank's chunk is likely to be in that core's cache.
  const CoreCount& cores = node_.cores();
  const auto worker = static_cast<std::uint32_t>(cores.exclusive ? node_.rank() : sched_getcpu());
  const auto workers = static_cast<std::uint32_t>(cores.exclusive ? node_.size() : cores.cores);
  // Uses compare-and-swap, because an atomic addition might claim a tile of a later operation that
  // peers have opened in the meantime.
  std::uint64_t before = block.claimed.load(std::memory_order_relaxed);
  std::optional<TileClaims::Claim> claim;
  do {
    if (before >> 32 != op_.lane.cooperative_number()) return std::nullopt;
    claim = TileClaims(static_cast<std::uint32_t>(before), plan_->tiles()).next(worker, workers);
    if (!claim) return std::nullopt;
  } while (!block.claimed.compare_exchange_weak(before, before >> 32 << 32 | claim->claimed,
                                                std::memory_order_relaxed));
  if (!enter_tile(claim->tile)) return std::nullopt;
  return claim->tile;
}

// Returns the next tile of this rank's share. Returns nothing if none is left or the operation has
// failed.
std::optional<std::uint32_t> TileRunner::next_tile() {
  if (next_ == end_ || !enter_tile(next_)) return std::nullopt;
  return next_++;
}

// Publishes that this rank is storing a tile. Returns false if the operation has failed.
bool TileRunner::enter_tile(std::uint32_t number) const {
  // Both accesses are sequentially consistent: either a leaving rank sees this rank inside the
  // tile, or this rank sees that the operation has failed.
  op_.lane.current_tile(node_.rank()).store(number + 1, std::memory_order_seq_cst);
  if (op_.lane.block().state.load(std::memory_order_seq_cst) ==
      op_.lane.state_word(LaneBlock::open))
    return true;
  leave_tile();
  return false;
}

// The limits come from measurements. Up to `most` bytes, plain stores find enough of their lines in
// the caches; above cache_bytes_ / 2, this holds only if a copy writes a few lines to all
// destinations before the next lines. Operations that read at least twice as much as they write
// have a smaller limit, which leaves the caches to the data that they read. Operations that write
// at least twice as much as they read have a larger limit. A part of a divided program call uses
// plain stores if it reduces, because the library reads its output next. For other parts, the size
// of the whole call on this node counts: all parts together write as much as that call, and the
// inputs of all ranks are in the caches too.
reduce::StorePolicy TileRunner::choose_store_policy() const {
  if (op_.slicing.slices() > 1) return reduce::StorePolicy::cached;  // the result is copied next
  const bool is_part = op_.call.whole != nullptr;
  if (is_part && op_.call.traits().reduces) return reduce::StorePolicy::cached;
  const int ranks = node_.size();
  const std::uint64_t read = (is_part ? send_bytes(*op_.call.whole, ranks) : op_.part_bytes) *
                             static_cast<std::uint64_t>(senders(program_call(op_.call), ranks));
  const std::uint64_t written = recv_bytes(program_call(op_.call), ranks) *
                                static_cast<std::uint64_t>(receivers(op_.call, ranks));
  std::uint64_t most = cache_bytes_ / 2 * 3;
  if (2 * written <= read) most = cache_bytes_;
  if (2 * read <= written) most = cache_bytes_ / 2 * 5;
  if (read + written > most) return reduce::StorePolicy::streaming;
  return read + written > cache_bytes_ / 2 ? reduce::StorePolicy::interleaved
                                           : reduce::StorePolicy::cached;
}

const std::byte* TileRunner::source(int rank, int chunk, const Tile& tile) const {
  const Slot& slot = op_.lane.slot(rank);
  const std::uint64_t at =
      slot.send_offset + tile.first_byte +
      op_.slicing.offset_in(send_is_staged(slot.memory), chunk, op_.slice_number);
  return as_source(node_.memory(rank), at, tile.bytes,
                   static_cast<device::Content>(content_in(slot.memory)), mapped_);
}

std::byte* TileRunner::destination(int rank, int chunk, const Tile& tile) const {
  device::ArenaView& memory = node_.memory(rank);
  const Slot& slot = op_.lane.slot(rank);
  const std::uint64_t at =
      slot.recv_offset + tile.first_byte +
      op_.slicing.offset_in(recv_is_staged(slot.memory), chunk, op_.slice_number);
  // Maps the pages by read faults. The owner has allocated the pages, so a read fault installs a
  // writable page-table entry, at a quarter of the cost of a write fault.
  if (!mapped_) memory.populate(at, tile.bytes, false);
  return memory.at(at);
}

void TileRunner::run_tile(std::uint32_t number) const {
  const Tile tile = plan_->tile(number);
  if (traits(op_.call.collective).exchanges()) return exchange_tile(tile);
  const RankChunks to = plan_->map().destinations(tile.chunk);
  const RankChunks from = plan_->map().sources(to.first_rank, to.chunk);
  std::array<const std::byte*, kMaxRanks> sources;
  std::array<std::byte*, kMaxRanks> destinations;
  std::size_t source_count = 0;
  std::size_t destination_count = 0;
  for (int rank = from.first_rank; rank < from.end_rank; ++rank)
    sources[source_count++] = source(rank, from.chunk, tile);
  for (int rank = to.first_rank; rank < to.end_rank; ++rank)
    destinations[destination_count++] = destination(rank, to.chunk, tile);
  if (source_count == 1) {
    reduce::copy_tile(sources[0], {destinations.data(), destination_count}, tile.bytes,
                      store_policy_);
  } else {
    reduce::reduce_tile(op_.call.data_type(), op_.call.reduction(), {sources.data(), source_count},
                        {destinations.data(), destination_count},
                        reduce::elements_in(op_.call.data_type(), tile.bytes), store_policy_);
  }
}

// Copies `outgoing` to `at_peer`, and what was at `at_peer` to `at_rank`. Keeps the bounce buffer
// small, because it is on the stack of the program's thread.
void TileRunner::exchange_through_bounce(const std::byte* outgoing, std::byte* at_peer,
                                         std::byte* at_rank, std::size_t bytes) const {
  alignas(64) std::array<std::byte, std::size_t{4} << 10> bounce;
  for (std::size_t done = 0; done < bytes; done += bounce.size()) {
    const std::size_t count = std::min(bounce.size(), bytes - done);
    std::byte* const to = at_peer + done;
    std::memcpy(bounce.data(), to, count);
    reduce::copy_tile(outgoing + done, {&to, 1}, count, store_policy_);
    std::memcpy(at_rank + done, bounce.data(), count);
  }
}

// Copies both directions of each pair of ranks together, because if the call is in place, the
// source of each direction is the destination of the other.
void TileRunner::exchange_tile(const Tile& tile) const {
  const int rank = tile.chunk;
  for (int peer = tile.first_peer; peer < tile.end_peer; ++peer) {
    const std::byte* const outgoing = source(rank, peer, tile);
    std::byte* const at_peer = destination(peer, rank, tile);
    if (peer == rank) {
      if (outgoing != at_peer)
        reduce::copy_tile(outgoing, {&at_peer, 1}, tile.bytes, store_policy_);
      continue;
    }
    const std::byte* const incoming = source(peer, rank, tile);
    std::byte* const at_rank = destination(rank, peer, tile);
    if (incoming != at_peer) {
      reduce::copy_tile(outgoing, {&at_peer, 1}, tile.bytes, store_policy_);
      reduce::copy_tile(incoming, {&at_rank, 1}, tile.bytes, store_policy_);
    } else {
      exchange_through_bounce(outgoing, at_peer, at_rank, tile.bytes);
    }
  }
}

}  // namespace hccl::node
