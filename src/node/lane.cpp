// SPDX-License-Identifier: Apache-2.0
// The first rank that attaches to a lane claims storage for the lane. The last rank that releases
// the lane frees the storage.
#include "node/lane.h"

#include "base/deadline.h"
#include "base/error.h"
#include "base/hash_index.h"
#include "base/text.h"
#include "base/wrapping.h"

#include <chrono>
#include <thread>

#include <sched.h>

namespace hccl::node {
namespace {

constexpr std::chrono::milliseconds kPoolTimeout{10'000};  // the lock is held for microseconds

}  // namespace

Lane::Lane(ControlBlock control, int rank, std::uint32_t ordinal)
    : control_(control),
      rank_(rank),
      ordinal_(ordinal),
      ranks_(control.header().ranks),
      number_(control.header().first_number),
      posted_end_(control.header().first_number),
      cooperative_number_(control.header().first_number),
      slices_done_(control.header().first_number),
      result_number_(control.header().first_number - 2) {}  // no last_result() yet

void Lane::lock_pool() {
  // If the holder dies, the communicator fails, and the fault ends this wait. The deadline ends the
  // wait for a holder that is stopped, or that died after it had departed.
  const Deadline deadline = Deadline::after(kPoolTimeout);
  std::atomic<std::uint32_t>& word = control_.header().pool_lock;
  const Fault fault(control_);
  for (;;) {
    std::uint32_t expected = 0;
    if (word.compare_exchange_strong(expected, static_cast<std::uint32_t>(rank_) + 1,
                                     std::memory_order_acquire)) {
      return;
    }
    if (fault.raised()) fault.throw_error();
    if (deadline.expired()) {
      throw Error(hcclSystemError,
                  text("this rank waited ",
                       std::chrono::duration_cast<std::chrono::seconds>(kPoolTimeout).count(),
                       " s for the lock on the table of streams, which local rank ", expected - 1,
                       " of this node holds; check whether that rank is stopped"));
    }
    sched_yield();
  }
}

void Lane::unlock_pool() { control_.header().pool_lock.store(0, std::memory_order_release); }

void Lane::initialise(LaneBlock& block, std::uint32_t index) {
  const std::uint32_t first = control_.header().first_number;
  for (std::size_t at = 0; at < kSlots * ranks_; ++at) {
    auto& slot = *reinterpret_cast<Slot*>(control_.slots(index) + at * Slot::kStride);
    slot.number.store(first - 1 - kSlots, std::memory_order_relaxed);  // matches no operation
  }
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    control_.current_tiles(index)[rank].number.store(0, std::memory_order_relaxed);
    control_.current_tiles(index)[rank].share.store(first - 1, std::memory_order_relaxed);
    SliceCounters& counters = control_.slice_counters(index)[rank];
    for (std::atomic<std::uint32_t>* counter :
         {&counters.filled, &counters.folded, &counters.released})
      counter->store(first, std::memory_order_relaxed);
  }
  block.claimed.store(std::uint64_t{first} << 32, std::memory_order_relaxed);
  block.tiles_done.store(0, std::memory_order_relaxed);
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
    throw Error(hcclInvalidUsage, text("this rank uses more than ", kLanes,
                                       " streams of one communicator at a time; destroy some"));
  }
  block_ = &control_.lane(*mine);
  current_tiles_ = control_.current_tiles(*mine);
  slice_counters_ = control_.slice_counters(*mine);
  slots_ = control_.slots(*mine);
  host_payloads_ = control_.host_payloads(*mine);
}

bool Lane::await_release_of_staging(bool failed) const noexcept {
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(failed ? 50 : 1000));
  while (!staging_is_released()) {
    if (deadline.expired()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

// Also checks the slices of calls that this rank has begun ahead of their turn.
bool Lane::staging_is_released() const {
  if (block_ == nullptr) return true;
  if (withdraws_slices_) return false;
  const std::uint32_t filled = slice_counters_[rank_].filled.load(std::memory_order_seq_cst);
  const std::uint32_t used = precedes(slices_done_, filled) ? filled : slices_done_;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    if (static_cast<int>(rank) != rank_ &&
        precedes(slice_counters_[rank].released.load(std::memory_order_seq_cst), used)) {
      return false;
    }
  }
  return true;
}

Lane::~Lane() {
  if (block_ == nullptr || Fault(control_).raised()) return;
  try {
    lock_pool();
  } catch (const Error&) {
    return;  // the communicator has failed or the lock has timed out: leave the lane claimed
  }
  if (++block_->released == control_.header().ranks)
    block_->key.store(0, std::memory_order_seq_cst);
  unlock_pool();
}

Mapping Lane::use_buffers(const device::Placement& send, const device::Placement& recv,
                          std::uint64_t bytes) {
  const auto key_of = [](const device::Placement& buffer) {
    return buffer.file_offset << 16 ^ buffer.serial;
  };
  const std::uint64_t key = hash_index(key_of(send), 63) ^ key_of(recv);
  Uses& uses = uses_[hash_index(key, kUsesBits)];
  if (uses.key != key) uses = {key, 0};
  const bool is_large = bytes >= kLargeBufferBytes;
  if (uses.count >= (is_large ? kUsesByShares : 1)) return Mapping::whole;
  ++uses.count;
  return is_large ? Mapping::by_shares : Mapping::unused;
}

}  // namespace hccl::node
