// SPDX-License-Identifier: Apache-2.0
// Before a rank waits, it takes every step that is ready, so that ranks that share a core need few
// context switches. First, it adds its data to all accumulators that are ready for it (can_add()),
// including those of later calls. Then it copies all complete results of the current call out.
#include "node/host_chain.h"

#include "base/scope_exit.h"
#include "node/call_match.h"
#include "node/post.h"
#include "node/rank_memory.h"
#include "reduce/reduce.h"

#include <array>
#include <span>

namespace hccl::node {

bool HostChain::serves(const CollectiveCall& call, const NodeSegment& node) {
  return call.traits().reduces && call.reduction() != hcclAvg &&
         reduce::folds_in_steps(call.data_type()) && 2 * node.cores().cores <= node.size() &&
         node.size() > 2;
}

HostChain::HostChain(NodeSegment& node, StallMonitor& stalls, std::uint64_t cache_bytes,
                     CollectiveOperation& op, std::uint32_t first)
    : HostCollective(node, stalls, cache_bytes, op,
                     HostSlices(op.staging->host_call(), node.size(), kAccumulatorBytes), first),
      end_(first + slices_.count()),
      added_(op.lane.slice_counters(node.rank()).filled.load(std::memory_order_relaxed)),
      drained_(first),
      is_on_host_(is_on_host(op.call, node.rank(), op.stages_send(), op.stages_recv())),
      posted_ranks_(op.lane, node.size()) {
  parts_[0].emplace(Part{call_, slices_, first});
  results_[0] = result_of(call_);
}

bool HostChain::run() {
  bool takes_other_path = false;
  // Also runs if the operation fails, so that peers learn that this rank no longer accesses the
  // accumulators. Advances `folded` too, because HostPath compares that counter with the numbers of
  // later slices.
  const ScopeExit at_end([&] {
    if (takes_other_path || !op_.lane.posted(op_.number)) return;
    op_.lane.finish_slices(slices_.count());
    op_.lane.slice_counters(node_.rank()).folded.store(end_, std::memory_order_relaxed);
    if (drained_ != end_) publish(&SliceCounters::released, end_);
  });
  check_access();
  post_once();
  for (;;) {
    add_ready_slices();
    if (agreed_) {
      drain_complete_slices();
    } else if (posted_ranks_.all_posted()) {
      agreed_ = all_on_host();
      if (agreed_) continue;
      takes_other_path = true;
      withdraw();
      return false;
    }
    if (drained_ == end_) return true;
    await_progress();
  }
}

// A peer that has seen the counter before its reset may still access this rank's staging buffer.
// begin_withdrawal() therefore delays the release of the buffer.
void HostChain::withdraw() {
  if (added_ != first_slice_) op_.lane.begin_withdrawal();
  op_.lane.slice_counters(node_.rank()).filled.store(first_slice_, std::memory_order_seq_cst);
}

// Checking the counter of the previous rank would not be enough: if that rank makes a different
// call, it may be counting slices of HostPath.
bool HostChain::rank_zero_takes_part() const {
  if (agreed_) return true;
  const Slot& slot = op_.lane.slot(op_.number, 0);
  return op_.lane.has_posted(0, op_.number) && call_matches(slot, op_.call) &&
         send_is_staged(slot.memory);
}

// Maps all accumulators, so that adding to those of later calls cannot fail.
void HostChain::map_accumulators() {
  if (has_mapped_) return;
  has_mapped_ = true;
  const Slot& slot = op_.lane.slot(op_.number, 0);
  if (node_.rank() != 0) node_.memory(0).follow(slot.send_offset, kStagingBytes, slot.send_serial);
  static_cast<void>(
      mapped_memory(node_, 0, host_chain_offset(slot.send_offset, 0), kHostChainBytes));
}

void HostChain::add_ready_slices() {
  if (!is_on_host_ || !rank_zero_takes_part()) return;
  map_accumulators();
  for (const Part* part = part_to_add(); part != nullptr && can_add(added_); part = part_to_add()) {
    add(*part, added_++);
    op_.lane.slice_counters(node_.rank()).filled.store(added_, std::memory_order_seq_cst);
    wake_after_adding();
  }
}

// Wakes only the next rank, or all ranks once the slice is complete. If ranks sleep while they
// wait, waking all of them after every step would take longer than the steps.
void HostChain::wake_after_adding() {
  Doorbell& bell = op_.lane.block().bell;
  if (node_.rank() + 1 == node_.size()) {
    bell.ring();  // the slice is complete
  } else {
    bell.ring_for(wake_event_of(node_.rank() + 1));
  }
}

const HostChain::Part* HostChain::part_to_add() {
  do {
    for (std::size_t at = 0; at < part_count_; ++at) {
      if (precedes(added_, end_of(*parts_[at]))) return &*parts_[at];
    }
  } while (begin_next());
  return nullptr;
}

bool HostChain::begin_next() {
  // Before all ranks are known to take this path, the operation may still take the cooperative
  // path, which reads `ahead` from its beginning.
  if (!agreed_ || op_.ahead == nullptr || has_no_more_ || part_count_ == kAccumulators ||
      node_.fault().raised()) {
    return false;
  }
  has_no_more_ = true;
  const CollectiveCall* const call = op_.ahead->next();
  if (call == nullptr || !serves(*call, node_) ||
      !can_read_early(*call, {results_.data(), part_count_})) {
    return false;
  }
  const int rank = node_.rank();
  const int ranks = node_.size();
  const auto distance = static_cast<std::uint32_t>(part_count_);
  HostStaging staging(node_.arena(), op_.staging->buffer(), *call, rank, ranks);
  CollectiveOperation next(op_.lane, staging.staged_call(), rank, ranks, op_.number + distance,
                           &staging);
  if (next.short_on_host || !can_post_early(next)) return false;
  if (!op_.lane.posted(next.number)) {
    post(node_, next);
    ring_if_all_posted(node_, next);
  }
  parts_[part_count_].emplace(
      Part{*call, HostSlices(*call, ranks, kAccumulatorBytes), end_of(*parts_[part_count_ - 1])});
  results_[part_count_++] = result_of(*call);
  has_no_more_ = false;
  return true;
}

bool HostChain::can_add(std::uint32_t number) const {
  return node_.rank() == 0 ? all_reached(&SliceCounters::released, number + 1 - kAccumulators)
                           : reached(node_.rank() - 1, &SliceCounters::filled, number + 1);
}

void HostChain::add(const Part& part, std::uint32_t number) {
  const CollectiveCall& call = part.call;
  const Slice slice = part.slices.slice(number - part.first);
  for (int chunk = 0; chunk < send_chunks(call, node_.size()); ++chunk) {
    std::byte* const sum = accumulator(part, number, chunk);
    const std::byte* const own =
        host_pointer(call.send + part.slices.offset_of(chunk) + slice.first_byte);
    if (node_.rank() == 0) {
      copy_on_host(sum, own, slice.bytes, false);
      continue;
    }
    const std::array<const std::byte*, 2> sources{sum, own};
    reduce::reduce_tile(call.data_type(), call.reduction(), sources, {&sum, 1},
                        reduce::elements_in(call.data_type(), slice.bytes),
                        reduce::StorePolicy::cached);
  }
}

void HostChain::drain_complete_slices() {
  while (drained_ != end_ && is_complete(drained_)) {
    drain(drained_++);
    op_.lane.slice_counters(node_.rank()).released.store(drained_, std::memory_order_seq_cst);
    if (all_reached(&SliceCounters::released, drained_))  // rank 0 may reuse the accumulator
      op_.lane.block().bell.ring_for(wake_event_of(0));
  }
}

void HostChain::drain(std::uint32_t number) const {
  const int rank = node_.rank();
  if (!receives(call_, rank)) return;
  const Slice slice = slices_.slice(number - first_slice_);
  const int chunk = call_.traits().has_blocks_in_input ? rank : 0;
  copy_on_host(host_pointer(call_.recv + slice.first_byte), accumulator(*parts_[0], number, chunk),
               slice.bytes, bypasses_cache_);
}

void HostChain::await_progress() {
  const bool adds = is_on_host_ && part_to_add() != nullptr;
  const auto has_progress = [&] {
    return (adds && can_add(added_) && rank_zero_takes_part()) ||
           (agreed_ ? is_complete(drained_) : posted_ranks_.all_posted());
  };
  // Records which ranks delay this rank, for the time-out error and the hang report.
  const std::uint32_t released = added_ + 1 - kAccumulators;
  const bool awaits_release =
      agreed_ && drained_ == added_ && !all_reached(&SliceCounters::released, released);
  op_.awaited_counter = awaits_release ? &SliceCounters::released : &SliceCounters::filled;
  op_.awaited_count = awaits_release ? released : drained_ + 1;
  op_.awaited_ranks = awaits_release ? AwaitedRanks::all : AwaitedRanks::in_order;
  wait_.wait_until([&] { return has_progress() || op_.lane.failed(); }, WaitBudget::unlimited,
                   wake_event_of(node_.rank()));
  op_.awaited_counter = nullptr;
  if (op_.lane.failed() && !has_progress()) node_.fault().throw_error();
}

std::byte* HostChain::accumulator(const Part& part, std::uint32_t number, int chunk) const {
  const std::uint64_t first = host_chain_offset(op_.lane.slot(op_.number, 0).send_offset, 0);
  return node_.memory(0).at(first + number % kAccumulators * kAccumulatorBytes +
                            part.slices.staged_offset_of(chunk));
}

}  // namespace hccl::node
