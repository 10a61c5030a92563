// SPDX-License-Identifier: Apache-2.0
// One rank's view of a lane. A lane is the sequence of a communicator's collectives on one stream.
#pragma once

#include "base/wrapping.h"
#include "device/arena.h"
#include "node/control_block.h"
#include "node/fault.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace hccl::node {

// Buffers of kLargeBufferBytes or more are mapped by shares (Mapping::by_shares) for their first
// kUsesByShares uses, because mapping them completely costs about as much as (ranks - 1) / 2 calls.
// Smaller buffers are mapped completely at their second use, because a call with shares takes
// longer: it completes only when every rank has computed its share.
inline constexpr std::uint32_t kUsesByShares = 64;
inline constexpr std::uint64_t kLargeBufferBytes = 1 << 20;

class Lane {
 public:
  // `ordinal`: the number of lanes that the communicator created before this one; the same on all
  // ranks.
  Lane(ControlBlock control, int rank, std::uint32_t ordinal);
  // Releases the lane. Its storage is reused after every rank has released the lane.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // The first call finds or claims the lane's storage; later calls do nothing. Blocks while another
  // rank changes the table of lanes. Throws Error(hcclInvalidUsage) if all lanes are in use, and
  // Error(hcclSystemError) if another rank keeps the table locked for 10 s. If the communicator has
  // failed, throws the recorded fault.
  void attach();

  [[nodiscard]] LaneBlock& block() const { return *block_; }
  // Returns the slot of `rank` for operation `number`. The slot belongs to that operation only if
  // `number` differs from number() by at most kMaxAhead.
  [[nodiscard]] Slot& slot(std::uint32_t number, int rank) const {
    const std::size_t row = number % kSlots;
    return *reinterpret_cast<Slot*>(slots_ + (row * ranks_ + static_cast<std::size_t>(rank)) *
                                                 Slot::kStride);
  }
  [[nodiscard]] Slot& slot(int rank) const { return slot(number_, rank); }
  // Returns whether the lane has host payloads. The same on all ranks. Requires attach().
  [[nodiscard]] bool has_host_payloads() const { return host_payloads_ != nullptr; }
  // Returns the host payload of `rank` for operation `number`.
  [[nodiscard]] std::byte* host_payload(std::uint32_t number, int rank) const {
    const std::size_t row = number % kSlots;
    return host_payloads_ + (row * ranks_ + static_cast<std::size_t>(rank)) * kHostPayloadStride;
  }
  // Saves the result of the current operation, an eager all-reduce, for last_result().
  void keep_result(const std::byte* result, std::size_t bytes) {
    std::memcpy(last_result_.data(), result, bytes);
    result_number_ = number_;
  }
  // Returns the result of the previous operation, or null if keep_result() has not saved it.
  [[nodiscard]] const std::byte* last_result() const {
    return result_number_ + 1 == number_ ? last_result_.data() : nullptr;
  }
  // Returns the number, plus one, of the tile that `rank` is storing; 0 if there is none.
  [[nodiscard]] std::atomic<std::uint32_t>& current_tile(int rank) const {
    return current_tiles_[rank].number;
  }
  [[nodiscard]] SliceCounters& slice_counters(int rank) const { return slice_counters_[rank]; }
  // Returns whether `rank` has posted its part of an operation.
  [[nodiscard]] bool has_posted(int rank, std::uint32_t number) const {
    // Sequentially consistent, like the store of the number (post.cpp) and the registration of
    // sleepers.
    return slot(number, rank).number.load(std::memory_order_seq_cst) == number;
  }
  [[nodiscard]] bool has_posted(int rank) const { return has_posted(rank, number_); }

  // Returns whether `rank` has computed its share of the current operation or slice.
  // complete_share() records this for the calling rank.
  [[nodiscard]] bool has_computed_share(int rank) const {
    return current_tiles_[rank].share.load(std::memory_order_relaxed) == cooperative_number_;
  }
  void complete_share() {
    current_tiles_[rank_].share.store(cooperative_number_, std::memory_order_relaxed);
  }
  // Returns whether this rank has posted its part of operation `number`, which may be later than
  // the current operation.
  [[nodiscard]] bool posted(std::uint32_t number) const { return precedes(number, posted_end_); }
  void set_posted(std::uint32_t number) { posted_end_ = number + 1; }

  [[nodiscard]] std::uint32_t ordinal() const { return ordinal_; }
  // number() returns the number of the current operation or, between operations, of the next one.
  // cooperative_number() counts the slices of cooperative operations in the same way.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] std::uint32_t cooperative_number() const { return cooperative_number_; }
  [[nodiscard]] std::uint32_t state_word(LaneBlock::Phase phase) const {
    return LaneBlock::state_of(cooperative_number_, phase);
  }
  // Returns whether the current slice of a cooperative operation is complete. Other ranks may be
  // several operations ahead.
  [[nodiscard]] bool complete() const {
    const std::uint32_t state = block_->state.load(std::memory_order_seq_cst) & ~3u;
    return precedes(state_word(LaneBlock::gathering), state);
  }
  // Records the use of a pair of buffers, the larger of which has `bytes` bytes. Returns how this
  // rank chooses to map its peers' buffers. Keeps use counts for at most 64 pairs; a pair whose
  // count has been overwritten is treated as new.
  [[nodiscard]] Mapping use_buffers(const device::Placement& send, const device::Placement& recv,
                                    std::uint64_t bytes);
  // Ends a slice that is not the operation's last.
  void finish_slice() { ++cooperative_number_; }
  // Ends an operation that did not use the lane's state word.
  void finish_eager() { ++number_; }
  // Returns ControlHeader::first_number plus the number of slices of the earlier operations on
  // HostPath, HostChain and HostReads.
  [[nodiscard]] std::uint32_t slices_done() const { return slices_done_; }
  void finish_slices(std::uint32_t count) { slices_done_ += count; }
  // Between begin_withdrawal() and end_withdrawal(), the slice counters do not show whether peers
  // still access this rank's staging buffer: the rank has withdrawn slices from HostChain, but some
  // peers may not have noticed. Once the operation is complete, all of them have.
  void begin_withdrawal() { withdraws_slices_ = true; }
  void end_withdrawal() { withdraws_slices_ = false; }
  // Blocks until no other rank accesses this rank's staging buffer any longer, or until 1 s has
  // passed (50 ms if `failed`: the communicator has failed). Returns whether all ranks have
  // released the buffer. The wait is limited because a rank that has died never releases it.
  [[nodiscard]] bool await_release_of_staging(bool failed) const noexcept;
  void finish_cooperative() {
    ++number_;
    ++cooperative_number_;
  }
  [[nodiscard]] bool failed() const {
    return (block_->state.load(std::memory_order_seq_cst) & 3) == LaneBlock::failed;
  }

 private:
  [[nodiscard]] bool staging_is_released() const;
  void lock_pool();
  void unlock_pool();
  void initialise(LaneBlock& block, std::uint32_t index);

  ControlBlock control_;
  int rank_;
  std::uint32_t ordinal_;
  LaneBlock* block_ = nullptr;
  CurrentTile* current_tiles_ = nullptr;
  SliceCounters* slice_counters_ = nullptr;
  std::byte* slots_ = nullptr;
  std::byte* host_payloads_ = nullptr;  // null if the lane has none
  std::size_t ranks_;
  std::uint32_t number_;
  std::uint32_t posted_end_;  // the first operation that this rank has not posted
  std::uint32_t cooperative_number_;
  std::uint32_t slices_done_;
  bool withdraws_slices_ = false;
  struct Uses {
    std::uint64_t key = 0;  // of the pair of buffers
    std::uint32_t count = 0;
  };
  static constexpr unsigned kUsesBits = 6;
  std::array<Uses, 1 << kUsesBits> uses_{};
  std::array<std::byte, Slot::kPayloadBytes> last_result_{};
  std::uint32_t result_number_;
};

}  // namespace hccl::node
