// SPDX-License-Identifier: Apache-2.0
// Lanes' storage in the control block: claimed by the first rank that comes, freed by the last that
// goes.
#include "node/lane.h"

#include "base/error.h"
#include "base/text.h"

#include <sched.h>

namespace hccl::node {

Lane::Lane(ControlBlock control, int rank, std::uint32_t ordinal)
    : control_(control),
      rank_(rank),
      ordinal_(ordinal),
      number_(control.header().first_number),
      cooperative_number_(control.header().first_number) {}

void Lane::lock_pool() {
  // The holder may die; then the communicator has failed, and so do we.
  std::atomic<std::uint32_t>& word = control_.header().pool_lock;
  const Fault fault(control_);
  for (;;) {
    std::uint32_t expected = 0;
    if (word.compare_exchange_weak(expected, static_cast<std::uint32_t>(rank_) + 1,
                                   std::memory_order_acquire)) {
      return;
    }
    if (fault.raised()) fault.throw_error();
    sched_yield();
  }
}

void Lane::unlock_pool() { control_.header().pool_lock.store(0, std::memory_order_release); }

void Lane::initialise(LaneBlock& block, std::uint32_t index) {
  const std::uint32_t first = control_.header().first_number;
  for (const std::uint32_t number : {first, first + 1}) {
    std::byte* slots = control_.slots(index, number);
    for (std::uint32_t rank = 0; rank < control_.header().ranks; ++rank) {
      auto& slot = *reinterpret_cast<Slot*>(slots + rank * Slot::kStride);
      slot.number.store(number - 2, std::memory_order_relaxed);  // of no operation to come
      control_.inside(index)[rank].tile.store(0, std::memory_order_relaxed);
    }
  }
  block.arrived.store(0, std::memory_order_relaxed);
  block.released = 0;
  block.state.store(LaneBlock::state_of(first, LaneBlock::gathering), std::memory_order_relaxed);
  block.key.store(ordinal_ + 1ull, std::memory_order_seq_cst);
}

void Lane::attach() {
  if (block_ != nullptr) return;
  lock_pool();
  std::optional<std::uint32_t> mine, free;
  std::atomic<std::uint32_t>& end = control_.header().lane_end;
  for (std::uint32_t index = 0; index < end.load(std::memory_order_relaxed) && !mine; ++index) {
    const std::uint64_t key = control_.lane(index).key.load(std::memory_order_relaxed);
    if (key == ordinal_ + 1ull) mine = index;
    if (key == 0 && !free) free = index;
  }
  if (!mine && !free && end.load(std::memory_order_relaxed) < kLanes) {
    free = end.fetch_add(1, std::memory_order_seq_cst);
  }
  if (!mine && free) initialise(control_.lane(*free), *free);
  unlock_pool();
  if (!mine) mine = free;
  if (!mine) {
    throw Error(hcclInvalidUsage, text("rank ", rank_, " uses more than ", kLanes,
                                       " streams of one communicator at a time; destroy some"));
  }
  block_ = &control_.lane(*mine);
  inside_ = control_.inside(*mine);
  slots_[0] = control_.slots(*mine, 0);
  slots_[1] = control_.slots(*mine, 1);
}

Lane::~Lane() {
  if (block_ == nullptr || Fault(control_).raised()) return;
  try {
    lock_pool();
  } catch (const Error&) {
    return;  // the communicator failed meanwhile: nobody will use the lane again
  }
  if (++block_->released == control_.header().ranks)
    block_->key.store(0, std::memory_order_seq_cst);
  unlock_pool();
}

}  // namespace hccl::node
