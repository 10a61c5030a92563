// SPDX-License-Identifier: Apache-2.0
// The path of larger operations: when all ranks have arrived one opens, then whichever ranks run
// claim tiles for everybody. Failing is one compare-and-swap of the state word; a claimer says
// which tile it is inside before it looks at the state once more, so a rank that leaves a failed
// operation knows whom to wait for.
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "node/tile_claims.h"
#include "node/waiting.h"

#include <chrono>

#include <sched.h>

namespace hccl::node {
namespace {

#ifdef HCCL_TEST_RELAXED_TILE_DONE
constexpr auto kTileDone =
    std::memory_order_relaxed;  // wrong on purpose: the race detector must see it
#else
constexpr auto kTileDone = std::memory_order_acq_rel;
#endif

}  // namespace

bool Engine::run_cooperative(Operation& op) {
  Lane& lane = op.lane;
  op.plan.emplace(op.call, size_, segment_.cores().cores, op.slice().bytes);
  if (lane.posted(op.number)) {
    const Slot& mine = lane.slot(rank_);
    op.send = {mine.send_offset, mine.send_serial};
    op.recv = {mine.recv_offset, mine.recv_serial};
  } else {
    if (op.staging != nullptr) op.staging->fill(op.slice());
    post(op);
  }
  do {
    if (!run_slice(op)) return false;
  } while (next_slice(op));
  return true;
}

// Returns false if it is left before it has begun.
bool Engine::run_slice(Operation& op) {
  Lane& lane = op.lane;
  std::atomic<std::uint32_t>& state = lane.block().state;
  const std::uint32_t gathering = lane.state_word(LaneBlock::gathering);
  const std::uint32_t open = lane.state_word(LaneBlock::open);
  Everybody everybody(lane, size_, op.slice_number);
  if (state.load(std::memory_order_acquire) == gathering && !everybody.arrived()) {
    prepost(op);
    const auto can_begin = [&] {
      return state.load(std::memory_order_acquire) != gathering || everybody.arrived();
    };
    // An operation that is left begins anew, so it is left only before its second slice.
    const WaitBudget wait_budget = op.slice_number == 0 ? op.wait_budget() : WaitBudget::unlimited;
    if (!wait(op, can_begin, wait_budget)) return false;
  }
  if (everybody.arrived()) {
    if (op.slice_number == 0) agree_on_slices(op);
    if (state.load(std::memory_order_acquire) == gathering) open_operation(op);
  }
  if (state.load(std::memory_order_acquire) == open) {
    // No memory or no address space: peers must not wait, and this rank must leave in order.
    const auto abandon = [&](hcclResult_t code, const char* why) {
      op.lane.inside(rank_).tile.store(0, std::memory_order_release);
      fault_.raise_with(code, [&] { return text(segment_.rank_text(rank_), ": ", why); });
    };
    try {
      work(op);
    } catch (const Error& error) {
      abandon(error.code(), error.what());
    } catch (const std::bad_alloc&) {
      abandon(hcclOutOfMemory, "out of host memory; free memory or raise the limit of the process");
    }
    if (state.load(std::memory_order_acquire) == open) {
      prepost(op);
      wait(op, [&] { return state.load(std::memory_order_acquire) != open; });
    }
  }
  if (!lane.complete()) {
    // No rank can have begun a later operation to which this rank had posted.
    if (state.load(std::memory_order_acquire) == lane.state_word(LaneBlock::failed)) leave(op);
    fault_.throw_error();
  }
  return true;
}

// All have arrived: if one of them goes through a stage, all take its slices.
void Engine::agree_on_slices(Operation& op) {
  bool staged = false;
  for (int rank = 0; rank < size_; ++rank) {
    const std::uint8_t memory = op.lane.slot(rank).memory;
    staged |= send_is_stage(memory) || recv_is_stage(memory);
  }
  if (!staged || op.staging != nullptr) return;
  op.slicing = Slicing(op.call, size_, true);
  op.plan.emplace(op.call, size_, segment_.cores().cores, op.slice().bytes);
}

// Ends a complete slice and stores its result. Returns whether another slice follows, to which this
// rank has then posted its part.
bool Engine::next_slice(Operation& op) {
  const bool last = op.slice_number + 1 == op.slicing.slices();
  if (op.recv_bytes != 0 && (last || op.stages_recv()))
    arena_.bring_after(op.call.recv, op.recv, op.recv_bytes);
  if (op.staging != nullptr) op.staging->drain(op.slice());
  if (last) return false;
  ++op.slice_number;
  op.lane.finish_slice();
  op.plan.emplace(op.call, size_, segment_.cores().cores, op.slice().bytes);
  if (op.staging != nullptr) op.staging->fill(op.slice());
  op.lane.slot(rank_).slice.store(op.slice_number, std::memory_order_seq_cst);
  return true;
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
  if (op.plan->tiles() > 1 && segment_.cores().cores > 1)
    block.bell.ring(segment_.cores().cores - 1);
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
    block.claimed.store(std::uint64_t{next} << 32, std::memory_order_relaxed);
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
  // Caches belong to cores; a rank that has one of its own also has its chunk there.
  const auto worker =
      static_cast<std::uint32_t>(segment_.cores().exclusive ? rank_ : sched_getcpu());
  const auto workers =
      static_cast<std::uint32_t>(segment_.cores().exclusive ? size_ : segment_.cores().cores);
  // Compared and swapped: adding might take a tile from an operation to come, which others have
  // opened since this rank last had a processor.
  std::uint64_t before = block.claimed.load(std::memory_order_relaxed);
  std::optional<TileClaims::Claim> claim;
  do {
    if (before >> 32 != op.lane.cooperative_number()) return std::nullopt;
    claim = TileClaims(static_cast<std::uint32_t>(before), op.plan->tiles()).next(worker, workers);
    if (!claim) return std::nullopt;
  } while (!block.claimed.compare_exchange_weak(before, before >> 32 << 32 | claim->claimed,
                                                std::memory_order_relaxed));
  const std::uint32_t number = claim->tile;
  InsideRecord& inside = op.lane.inside(rank_);
  // Both sequentially consistent: either a leaver sees us inside or we see that the operation has
  // failed.
  inside.tile.store(number + 1, std::memory_order_seq_cst);
  if (block.state.load(std::memory_order_seq_cst) == op.lane.state_word(LaneBlock::open))
    return number;
  inside.tile.store(0, std::memory_order_release);
  return std::nullopt;
}

// Returns when no living peer stores into this rank's memory any more. One that stays inside a tile
// (stopped by a signal) is left behind on the old pages: the allocations move to fresh ones.
void Engine::leave(const Operation& op) {
  const Deadline wait_budget = Deadline::after(std::chrono::milliseconds(100));
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const auto& record = segment_.record(rank);
    for (;;) {
      const std::uint32_t tile = op.lane.inside(rank).tile.load(std::memory_order_seq_cst);
      if (tile == 0 || !op.plan->stores_to(tile - 1, rank_)) break;
      if (record.presence.load(std::memory_order_seq_cst) == Presence::dead) break;
      if (wait_budget.expired()) {
        log(LogLevel::info, "node", "rank ", rank_, ": ", segment_.rank_text(rank),
            " is held up inside a tile of a failed operation; what it may still store there "
            "reaches nobody, for this rank's ",
            op.recv_bytes, " bytes move to fresh pages");
        arena_.move_to_fresh_pages({op.recv.file_offset, op.recv_bytes});
        return;
      }
      sched_yield();
    }
  }
}

}  // namespace hccl::node
