// SPDX-License-Identifier: Apache-2.0
// Runs the operation as one slice. Peers find the address of a rank's input in the rank's slot.
#include "node/host_reads.h"

#include "base/deadline.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "device/host_memory.h"
#include "node/post.h"

#include <chrono>

namespace hccl::node {
namespace {

// Returns whether direct reads take less time than HostPath. HostPath copies each block to a
// staging buffer once, for all ranks that need the block, so direct reads gain less if many ranks
// share the cores. If each rank has a core, the root of a broadcast copies to its staging buffer
// while the other ranks copy out of it, whereas direct reads leave the root idle. If more than two
// ranks then read the root's memory directly, the kernel's locks and reference counts for that
// memory delay them all. With short blocks, HostPath takes less time than the system calls.
bool is_faster(const CollectiveCall& call, NodeSegment& node) {
  const CollectiveTraits& traits = call.traits();
  const std::uint64_t block = chunk_bytes(call, node.size());
  const bool prefers_staging = node.cross_memory().prefers_staging();
  if (node.cores().exclusive) {
    constexpr std::uint64_t kLongBroadcast = 1 << 20;
    if (prefers_staging) return false;
    if (traits.senders == RankSet::root && (node.size() > 2 || block >= kLongBroadcast))
      return false;
  }
  if (node.size() == 2) return block >= 4 << 10;
  if (traits.exchanges()) return block >= (prefers_staging ? 64 << 10 : 16 << 10);
  return block >= 128 << 10 && node.size() <= 2 * node.cores().cores;
}

// Returns whether a rank's input stays unchanged while its peers read it. The result may overlap
// the input only in the rank's own block, which does not change.
bool keeps_input(const CollectiveCall& call, int rank, int ranks) {
  const CollectiveTraits& traits = call.traits();
  const std::uint64_t own_block = static_cast<std::uint64_t>(rank) * chunk_bytes(call, ranks);
  const AddressRange input{call.send, send_bytes(call, ranks)};
  const AddressRange result{call.recv, recv_bytes(call, ranks)};
  if (!sends(call, rank) || !receives(call, rank) || !input.overlaps(result)) return true;
  if (traits.exchanges()) return false;
  return call.send == call.recv + (traits.has_blocks_in_output ? own_block : 0);
}

HostSlices one_slice(const CollectiveCall& call, int ranks) {
  return {call, ranks, send_bytes(call, ranks) + 64 * static_cast<std::uint64_t>(ranks)};
}

}  // namespace

HostReads::HostReads(NodeSegment& node, StallMonitor& stalls, std::uint64_t cache_bytes,
                     CollectiveOperation& op, std::uint32_t first)
    : HostCollective(node, stalls, cache_bytes, op, one_slice(op.staging->host_call(), node.size()),
                     first),
      end_(first + 1) {}

bool HostReads::serves(const CollectiveCall& call, NodeSegment& node) {
  return !call.traits().reduces && is_faster(call, node) &&
         keeps_input(call, node.rank(), node.size()) && node.cross_memory().can_read_all();
}

// A rank that has posted the operation ahead of its turn keeps the choice that it has posted.
bool HostReads::is_chosen() const {
  return op_.lane.posted(op_.number) ? reads_peers(op_.lane.slot(op_.number, node_.rank()).memory)
                                     : serves(call_, node_);
}

bool HostReads::run() {
  if (!is_chosen()) return false;
  check_access();
  op_.reads_peers = true;
  post_once();
  await_posts();
  if (!all_on_host() || !all_read()) return false;
  {
    // Also runs if the operation fails, because this rank then no longer reads its peers' input.
    const ScopeExit at_end([&] {
      SliceCounters& own = op_.lane.slice_counters(node_.rank());
      op_.lane.finish_slices(1);
      own.filled.store(end_, std::memory_order_relaxed);
      own.folded.store(end_, std::memory_order_relaxed);
      own.released.store(end_, std::memory_order_seq_cst);
    });
    copy_from_peers();
    copy_own_chunk(slices_.slice(0));
  }
  if (all_reached(&SliceCounters::released, end_)) op_.lane.block().bell.ring();
  begin_next_call([&](const CollectiveCall& call) { return serves(call, node_); },
                  [&](CollectiveOperation& next) {
                    next.reads_peers = true;
                    HostReads(node_, stalls_, cache_bytes_, next, end_).post_once();
                  });
  // Peers may read this rank's input until they have released the slice.
  if (sends(call_, node_.rank())) await(&SliceCounters::released, end_);
  return true;
}

// Requires that all ranks have posted. Returns whether all of them have chosen this path.
bool HostReads::all_read() const {
  for (int rank = 0; rank < node_.size(); ++rank) {
    if (!reads_peers(op_.lane.slot(op_.number, rank).memory)) return false;
  }
  return true;
}

void HostReads::copy_from_peers() {
  if (!receives(call_, node_.rank()) || keeps_own_data(call_, node_.rank())) return;
  for (int step = 1; step < node_.size(); ++step) {
    const int peer = (node_.rank() + step) % node_.size();
    if (sends(call_, peer)) copy_from(peer);
  }
}

void HostReads::copy_from(int peer) {
  const CollectiveTraits& traits = call_.traits();
  const std::uint64_t from = op_.lane.slot(op_.number, peer).host_input() +
                             (traits.has_blocks_in_input ? slices_.offset_of(node_.rank()) : 0);
  const std::uint64_t to = call_.recv + (traits.has_blocks_in_output ? slices_.offset_of(peer) : 0);
  const std::uint64_t bytes = slices_.slice(0).bytes;
  if (node_.cross_memory().read(peer, host_pointer(to), from, bytes)) return;
  // The kernel does not say which side it could not access.
  device::check_host_pages(to, bytes, device::HostAccess::write, "receive buffer");
  fail_unreadable(peer);
}

// First waits up to a second for another fault: if the peer has exited, that fault names the cause.
void HostReads::fail_unreadable(int peer) {
  constexpr std::chrono::seconds kPatience{1};
  const Deadline deadline = Deadline::after(kPatience);
  const auto raised = [&] { return node_.fault().raised(); };
  while (!raised() && !deadline.expired())
    node_.own_record().mail.sleep(deadline.remaining(kPatience), raised);
  node_.fault().raise(
      hcclSystemError,
      text(describe(program_call(op_.call)), ": ", node_.own_text(),
           " can no longer read the memory of ", node_.rank_text(peer),
           "; look at that rank's output, or set HCCL_CMA_DISABLE=1 for all ranks"));
  node_.fault().throw_error();
}

}  // namespace hccl::node
