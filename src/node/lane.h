// SPDX-License-Identifier: Apache-2.0
// A rank's end of a lane: the operations of one stream of one communicator, in order.
#pragma once

#include "node/control_block.h"
#include "node/fault.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace hccl::node {

class Lane {
 public:
  // `ordinal`: how many streams the communicator used before this one; the same on all ranks.
  Lane(ControlBlock control, int rank, std::uint32_t ordinal);
  // Gives the lane up; its storage is reused when every rank has.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Finds or makes the lane's storage at the first operation. Throws Error if all lanes are taken
  // or the communicator has failed.
  void attach();

  [[nodiscard]] LaneBlock& block() const { return *block_; }
  [[nodiscard]] Slot& slot(int rank) const {
    return *reinterpret_cast<Slot*>(slots_[number_ & 1] +
                                    static_cast<std::size_t>(rank) * Slot::kStride);
  }
  [[nodiscard]] InsideRecord& inside(int rank) const { return inside_[rank]; }
  [[nodiscard]] bool arrived(int rank) const {
    return slot(rank).number.load(std::memory_order_acquire) == number_;
  }

  [[nodiscard]] std::uint32_t ordinal() const { return ordinal_; }
  // Of the next or current operation; `cooperative_number` counts those that went through the
  // lane's state word.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] std::uint32_t state_word(LaneBlock::Phase phase) const {
    return LaneBlock::state_of(cooperative_number_, phase);
  }
  // Whether this lane has used the buffer at `offset` before; from now on it has.
  [[nodiscard]] bool seen_before(std::uint64_t offset, std::uint32_t serial) {
    const std::uint64_t buffer = offset << 16 ^ serial;
    std::uint64_t& entry = seen_[(offset >> 12) * 0x9e3779b97f4a7c15u >> 58];
    return std::exchange(entry, buffer) == buffer;
  }
  void finish_eager() { ++number_; }
  void finish_cooperative() {
    ++number_;
    ++cooperative_number_;
  }
  [[nodiscard]] bool failed() const {
    return (block_->state.load(std::memory_order_seq_cst) & 3) == LaneBlock::failed;
  }

 private:
  void lock_pool();
  void unlock_pool();
  void initialise(LaneBlock& block, std::uint32_t index);

  ControlBlock control_;
  int rank_;
  std::uint32_t ordinal_;
  LaneBlock* block_ = nullptr;
  InsideRecord* inside_ = nullptr;
  std::byte* slots_[2] = {nullptr, nullptr};
  std::uint32_t number_;
  std::uint32_t cooperative_number_;
  std::array<std::uint64_t, 64> seen_{};
};

}  // namespace hccl::node
