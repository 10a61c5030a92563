// SPDX-License-Identifier: Apache-2.0
// For each slice, a rank fills a segment of its staging buffer, folds its share, and drains the
// data of the other ranks. The rank counts these steps in its SliceCounters. It fills the next
// slice before it folds the current one, so that its peers seldom wait.
#include "node/host_path.h"

#include "base/scope_exit.h"
#include "device/copy.h"
#include "device/host_memory.h"
#include "node/host_chain.h"
#include "node/host_reads.h"
#include "node/post.h"
#include "node/rank_memory.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hccl::node {
namespace {

constexpr std::uint64_t kTileBytes = 64 << 10;

// Returns how many bytes a slice may take up in a rank's segment. The segments in use at any one
// time should fit into the caches, but slices should be large enough that ranks sharing a core
// seldom need a context switch. If each rank has its own core, and so usually its own second-level
// cache, slices of up to kLargeSliceBytes are faster for two ranks, and for calls of kLongCallBytes
// or more, because the ranks then wait for each other less often.
std::uint64_t segment_bytes(const CollectiveCall& call, const NodeSegment& node) {
  constexpr std::uint64_t kBytesOfAllRanks = 1 << 20;
  constexpr std::uint64_t kMaxSliceBytes = 128 << 10;
  constexpr std::uint64_t kLongCallBytes = 4 << 20;
  constexpr std::uint64_t kLargeSliceBytes = 256 << 10;
  static_assert(kLargeSliceBytes <= HostSlices::kSegmentBytes);
  const int ranks = node.size();
  if (node.cores().exclusive && (ranks == 2 || send_bytes(call, ranks) >= kLongCallBytes))
    return kLargeSliceBytes;
  return std::clamp<std::uint64_t>(kBytesOfAllRanks / static_cast<std::uint64_t>(ranks), 32 << 10,
                                   kMaxSliceBytes);
}

// Returns how many parts of a segment successive slices use in turn. With several parts, the
// staging buffer is overwritten as late as possible: a store to a line that is still in the cache
// of the rank that has read it can take several times as long as a store to a line that has left
// that cache. If ranks share cores, or if several ranks read the staged results of a reduction, a
// smaller area is as fast or faster.
std::uint64_t parts_of_segment(const CollectiveCall& call, const HostSlices& slices,
                               const NodeSegment& node) {
  const CollectiveTraits& traits = call.traits();
  const bool shares_results =
      traits.reduces && !traits.has_blocks_in_input && receivers(call, node.size()) > 1;
  const bool uses_all = node.cores().exclusive && !shares_results;
  return uses_all ? HostSlices::kSegmentBytes / slices.staged_bytes() : 1;
}

}  // namespace

HostPath::HostPath(NodeSegment& node, StallMonitor& stalls, std::uint64_t cache_bytes,
                   CollectiveOperation& op, std::uint32_t first)
    : HostCollective(node, stalls, cache_bytes, op,
                     HostSlices(op.staging->host_call(), node.size(),
                                segment_bytes(op.staging->host_call(), node)),
                     first),
      parts_(parts_of_segment(call_, slices_, node)) {}

// Fills the first slice before this rank knows whether all ranks use host memory. Otherwise the
// ranks would have to wait for each other twice, and if they share cores, each wait costs a round
// of context switches.
bool HostPath::run() {
  check_access();
  begin();
  await_posts();
  if (!all_on_host()) {
    op_.lane.slice_counters(node_.rank()).filled.store(first_slice_, std::memory_order_seq_cst);
    return false;
  }
  for (int peer = 0; peer < node_.size(); ++peer) {
    const Slot& slot = op_.lane.slot(op_.number, peer);
    if (peer != node_.rank() && sends(call_, peer))
      node_.memory(peer).follow(slot.send_offset, kStagingBytes, slot.send_serial);
  }
  const std::uint32_t count = slices_.count();
  // Runs even if the operation fails, because peers must learn that this rank no longer reads their
  // staging buffers, and because the next operation, which may have begun already, numbers its
  // slices after these.
  const ScopeExit at_end([&] {
    op_.lane.finish_slices(count);
    publish(&SliceCounters::released, first_slice_ + count);
  });
  for (std::uint32_t slice = 0; slice < count; ++slice) {
    if (slice + 1 < count) fill(slice + 1);
    fold(slice);
    if (slice + 1 == count) begin_next();
    drain(slice);
  }
  return true;
}

void HostPath::begin() {
  if (!op_.lane.posted(op_.number)) post(node_, op_);
  if (!reached(node_.rank(), &SliceCounters::filled, first_slice_ + 1)) fill(0);
}

void HostPath::begin_next() {
  const auto serves = [&](const CollectiveCall& call) {
    return !HostChain::serves(call, node_) && !HostReads::serves(call, node_);
  };
  begin_next_call(serves, [&](CollectiveOperation& next) {
    HostPath path(node_, stalls_, cache_bytes_, next, first_slice_ + slices_.count());
    if (path.can_fill_early()) path.begin();
  });
}

// Returns whether fill(0) can neither block nor fail.
bool HostPath::can_fill_early() const {
  device::Arena& arena = node_.arena();
  const std::uint64_t segment =
      host_path_offset(arena.file_offset(op_.staging->buffer()), node_.rank()) + place_of(0);
  const auto chunks = static_cast<std::uint64_t>(send_chunks(call_, node_.size()));
  const bool is_filled = op_.stages_send() || call_.traits().reduces;
  return (!is_filled || arena.view()->populated(segment, chunks * slices_.slice(0).bytes)) &&
         all_reached(&SliceCounters::released, first_slice_ + 1 - HostSlices::kSegments);
}

std::uint64_t HostPath::place_of(std::uint32_t slice) const {
  const std::uint32_t number = first_slice_ + slice;
  const std::uint64_t segment = number % HostSlices::kSegments * HostSlices::kSegmentBytes;
  return segment + number / HostSlices::kSegments % parts_ * slices_.staged_bytes();
}

std::byte* HostPath::staged(int rank, std::uint32_t slice, std::uint64_t offset,
                            std::uint64_t bytes) const {
  const std::uint64_t segments =
      host_path_offset(op_.lane.slot(op_.number, rank).send_offset, rank);
  const std::uint64_t at = segments + place_of(slice) + offset;
  return mapped_memory(node_, rank, at, bytes);
}

// Overwrites a segment of the staging buffer only when all ranks have released the segment's
// previous slice.
void HostPath::fill(std::uint32_t slice) {
  const std::uint32_t number = first_slice_ + slice;
  if (op_.stages_send() || call_.traits().reduces)
    await(&SliceCounters::released, number + 1 - HostSlices::kSegments);
  const int rank = node_.rank();
  const Slice all = slices_.slice(slice);
  if (op_.stages_send()) {
    const auto copy_in = [&](int chunk, std::uint64_t first, std::uint64_t bytes) {
      if (bytes == 0) return;
      const std::uint64_t from = call_.send + slices_.offset_of(chunk) + all.first_byte + first;
      copy_on_host(staged(rank, slice, slices_.staged_offset_of(chunk) + first, bytes),
                   host_pointer(from), bytes, false);
    };
    if (call_.traits().has_blocks_in_input) {
      for (int chunk = 0; chunk < node_.size(); ++chunk) {
        if (chunk != rank) copy_in(chunk, 0, all.bytes);
      }
    } else if (call_.traits().reduces) {
      const Slice own = slices_.share(all, rank);
      copy_in(0, 0, own.first_byte);
      copy_in(0, own.first_byte + own.bytes, all.bytes - own.first_byte - own.bytes);
    } else {
      copy_in(0, 0, all.bytes);
    }
  }
  publish(&SliceCounters::filled, number + 1);
}

void HostPath::fold(std::uint32_t slice) {
  const CollectiveTraits& traits = call_.traits();
  if (!traits.reduces) return;
  const std::uint32_t number = first_slice_ + slice;
  const int rank = node_.rank();
  const Slice all = slices_.slice(slice);
  const int chunk = traits.has_blocks_in_input ? rank : 0;
  const Slice own = traits.has_blocks_in_input ? Slice{0, all.bytes} : slices_.share(all, rank);
  if (own.bytes == 0) return publish(&SliceCounters::folded, number + 1);
  await(&SliceCounters::filled, number + 1);
  const bool others_receive =
      !traits.has_blocks_in_input && (receivers(call_, node_.size()) > 1 || !receives(call_, rank));
  // Peers soon read the staged result, so it must stay in the cache. With two ranks, the staged
  // result overwrites a source, so reduce_tile() writes it with plain stores in any case, like an
  // in-place result.
  const bool streams =
      bypasses_cache_ && receives(call_, rank) && !is_in_place(call_, rank, node_.size());
  const bool copies = streams && others_receive && node_.size() > 2;
  for (std::uint64_t done = 0; done < own.bytes; done += kTileBytes) {
    const std::uint64_t bytes = std::min(kTileBytes, own.bytes - done);
    const std::uint64_t at = own.first_byte + done;
    const std::uint64_t in_stage = slices_.staged_offset_of(chunk) + at;
    std::array<const std::byte*, kMaxRanks> sources;
    for (int peer = 0; peer < node_.size(); ++peer) {
      sources[static_cast<std::size_t>(peer)] =
          peer == rank ? host_pointer(call_.send + slices_.offset_of(chunk) + all.first_byte + at)
                       : staged(peer, slice, in_stage, bytes);
    }
    std::byte* const result = host_pointer(call_.recv + all.first_byte + at);
    std::array<std::byte*, 2> destinations;
    std::size_t count = 0;
    if (receives(call_, rank) && !copies) destinations[count++] = result;
    if (others_receive)
      destinations[count++] = staged(keeper_of_share(rank), slice, in_stage, bytes);
    reduce::reduce_tile(
        call_.data_type(), call_.reduction(),
        {sources.data(), static_cast<std::size_t>(node_.size())}, {destinations.data(), count},
        reduce::elements_in(call_.data_type(), bytes),
        streams && !copies ? reduce::StorePolicy::streaming : reduce::StorePolicy::cached);
    if (copies) copy_on_host(result, destinations[0], bytes, true);
  }
  publish(&SliceCounters::folded, number + 1);
}

void HostPath::drain(std::uint32_t slice) {
  const CollectiveTraits& traits = call_.traits();
  const std::uint32_t number = first_slice_ + slice;
  const int rank = node_.rank();
  const Slice all = slices_.slice(slice);
  const auto copy_out = [&](int peer, int chunk, std::uint64_t staged_at, std::uint64_t first,
                            std::uint64_t bytes) {
    if (bytes == 0) return;
    copy_on_host(host_pointer(call_.recv + slices_.offset_of(chunk) + all.first_byte + first),
                 staged(peer, slice, staged_at, bytes), bytes, bypasses_cache_);
  };
  copy_own_chunk(all);
  if (receives(call_, rank) && traits.reduces && !traits.has_blocks_in_input) {
    await(&SliceCounters::folded, number + 1);
    for (int step = 1; step < node_.size(); ++step) {
      const int peer = (rank + step) % node_.size();
      const Slice share = slices_.share(all, peer);
      copy_out(keeper_of_share(peer), 0, share.first_byte, share.first_byte, share.bytes);
    }
  } else if (receives(call_, rank) && !traits.reduces && !keeps_own_data(call_, rank)) {
    await(&SliceCounters::filled, number + 1, AwaitedRanks::senders);
    for (int step = 1; step < node_.size(); ++step) {
      const int peer = (rank + step) % node_.size();
      if (!sends(call_, peer)) continue;
      const int from = traits.has_blocks_in_input ? rank : 0;
      const int to = traits.has_blocks_in_output ? peer : 0;
      copy_out(peer, to, slices_.staged_offset_of(from), 0, all.bytes);
    }
  }
  publish(&SliceCounters::released, number + 1);
}

}  // namespace hccl::node
