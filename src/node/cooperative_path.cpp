// SPDX-License-Identifier: Apache-2.0
// The state of an operation, or of each of its slices, is `gathering`, then `open`. Completion sets
// the state word to `gathering` with the next number. A fault sets the state to `failed`. Each
// change is a single compare-and-swap.
#include "node/cooperative_path.h"

#include "base/deadline.h"
#include "base/log.h"
#include "node/call_match.h"
#include "node/post.h"

#include <atomic>
#include <chrono>

#include <sched.h>

namespace hccl::node {

bool CooperativePath::run() {
  tiles_.plan_slice();
  if (op_.lane.posted(op_.number)) {
    const Slot& mine = op_.lane.slot(node_.rank());
    op_.send = {mine.send_offset, mine.send_serial};
    op_.recv = {mine.recv_offset, mine.recv_serial};
    op_.mapping = mapping_in(mine.memory);
  } else {
    post(node_, op_);
  }
  if (op_.staging != nullptr) make_slice_ready();
  do {
    if (!gather()) return false;
    if (is_in(LaneBlock::open)) tiles_.run();
    if (is_in(LaneBlock::open)) {
      prepost(node_, op_);
      if (!wait_.wait_until([&] { return !is_in(LaneBlock::open); }, budget_for_shares()))
        return false;
    }
    if (!op_.lane.complete()) {
      // No rank can have begun a later operation, so ranks store only tiles of this operation.
      if (is_in(LaneBlock::failed)) await_storing_peers();
      node_.fault().throw_error();
    }
  } while (next_slice());
  return true;
}

// Waits until all ranks have posted the operation and are ready for the current slice. Then opens
// the slice, unless another rank has opened it or the operation has failed. Returns false if the
// wait budget is used up first.
bool CooperativePath::gather() {
  PostedRanks ranks(op_.lane, node_.size(), op_.slice_number + 1);
  if (is_in(LaneBlock::gathering) && !ranks.all_posted()) {
    prepost(node_, op_);
    // Wakes the ranks that have begun another path and sleep until all ranks have posted.
    if (op_.slice_number == 0) ring_if_all_posted(node_, op_);
    const auto can_begin = [&] { return !is_in(LaneBlock::gathering) || ranks.all_posted(); };
    // A suspended operation restarts from its first slice, so it may be suspended only before its
    // second slice.
    const WaitBudget wait_budget =
        op_.slice_number == 0 ? op_.wait_budget() : WaitBudget::unlimited;
    if (!wait_.wait_until(can_begin, wait_budget)) return false;
  }
  if (ranks.all_posted()) {
    if (op_.slice_number == 0) agree_on_plan();
    if (is_in(LaneBlock::gathering)) open_operation();
  }
  return true;
}

// If another rank uses a staging buffer and this rank does not, cuts the operation into the same
// slices as that rank. If any rank has chosen Mapping::by_shares, plans fixed shares.
void CooperativePath::agree_on_plan() {
  bool staged = false;
  for (int rank = 0; rank < node_.size(); ++rank) {
    const std::uint8_t memory = op_.lane.slot(rank).memory;
    staged |= send_is_staged(memory) || recv_is_staged(memory);
    op_.has_shares |= mapping_in(memory) == Mapping::by_shares;
  }
  const bool is_sliced = staged && op_.staging == nullptr;
  if (is_sliced) op_.slicing = Slicing(op_.call, node_.size(), true);
  if (is_sliced || op_.has_shares) tiles_.plan_slice();
}

// Returns how long this rank may wait for the operation to complete. Without shares, the wait is
// not limited, because other ranks are already computing the remaining tiles. With shares, the
// slowest rank may not have begun its share, so the wait budget applies. An operation with a
// staging buffer or several slices is not suspended, because a resumed operation restarts from its
// first slice.
WaitBudget CooperativePath::budget_for_shares() const {
  const bool can_resume = op_.has_shares && op_.staging == nullptr && op_.slicing.slices() == 1;
  return can_resume ? op_.wait_budget() : WaitBudget::unlimited;
}

// Copies the result of a complete slice out of the staging buffer, if there is one. Returns whether
// another slice follows; this rank's part of that slice is then ready.
bool CooperativePath::next_slice() {
  const bool last = op_.slice_number + 1 == op_.slicing.slices();
  if (op_.recv_bytes != 0 && (last || op_.stages_recv()))
    node_.arena().copy_if_moved(op_.call.recv, op_.recv, op_.recv_bytes);
  if (op_.staging != nullptr) op_.staging->drain(op_.slice());
  if (last) return false;
  ++op_.slice_number;
  op_.lane.finish_slice();
  tiles_.plan_slice();
  make_slice_ready();
  return true;
}

void CooperativePath::make_slice_ready() {
  if (op_.staging != nullptr) op_.staging->fill(op_.slice());
  op_.lane.slot(node_.rank()).slice.store(op_.slice_number + 1, std::memory_order_seq_cst);
}

void CooperativePath::open_operation() {
  if (!calls_match(op_.lane, op_.call, node_.size())) {
    raise_mismatch(node_, op_);
    return;
  }
  LaneBlock& block = op_.lane.block();
  std::uint32_t expected = op_.lane.state_word(LaneBlock::gathering);
  if (!block.state.compare_exchange_strong(expected, op_.lane.state_word(LaneBlock::open),
                                           std::memory_order_seq_cst)) {
    return;  // another rank was first, or the operation has failed
  }
  // With shares, wakes all ranks, because each must compute its share. Otherwise, if there are
  // several tiles, wakes one rank for each core other than this rank's; more ranks would only
  // compete for the cores. All ranks are woken when the operation completes.
  if (op_.has_shares) return block.bell.ring();
  const int cores = node_.cores().cores;
  if (tiles_.plan().tiles() > 1 && cores > 1) block.bell.ring(cores - 1);
}

// Blocks, for at most 100 ms, until no living peer stores into this rank's memory. If a peer is
// still inside a tile after that time (for example, because it is stopped), moves this rank's
// receive buffer to fresh pages. The peer's late stores then go to the old pages.
void CooperativePath::await_storing_peers() {
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(100));
  for (int rank = 0; rank < node_.size(); ++rank) {
    if (rank == node_.rank()) continue;
    for (;;) {
      const std::uint32_t tile = op_.lane.current_tile(rank).load(std::memory_order_seq_cst);
      if (tile == 0 || !tiles_.plan().stores_to(tile - 1, node_.rank())) break;
      if (node_.record(rank).presence.load(std::memory_order_seq_cst) == Presence::dead) break;
      if (deadline.expired()) {
        log(LogLevel::info, "node", node_.own_text(), ": ", node_.rank_text(rank),
            " is stuck inside a tile of a failed operation; moving this rank's receive buffer of ",
            op_.recv_bytes,
            " bytes to fresh pages, so that late stores by that rank have no effect");
        node_.arena().move_to_fresh_pages({op_.recv.file_offset, op_.recv_bytes});
        return;
      }
      sched_yield();
    }
  }
}

}  // namespace hccl::node
