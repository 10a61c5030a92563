// SPDX-License-Identifier: Apache-2.0
#include "node/host_collective.h"

#include "base/wrapping.h"
#include "device/copy.h"
#include "device/host_memory.h"
#include "node/call_match.h"
#include "node/post.h"
#include "reduce/reduce.h"

#include <algorithm>

namespace hccl::node {
namespace {

// Returns the total size of all ranks' buffers. Assumes that either all ranks' buffers are in
// place, or none.
std::uint64_t program_bytes(const CollectiveCall& call, int rank, int ranks) {
  const std::uint64_t sent =
      send_bytes(call, ranks) * static_cast<std::uint64_t>(senders(call, ranks));
  const std::uint64_t received =
      recv_bytes(call, ranks) * static_cast<std::uint64_t>(receivers(call, ranks));
  return is_in_place(call, rank, ranks) ? std::max(sent, received) : sent + received;
}

}  // namespace

HostCollective::HostCollective(NodeSegment& node, StallMonitor& stalls, std::uint64_t cache_bytes,
                               CollectiveOperation& op, HostSlices slices, std::uint32_t first)
    : node_(node),
      stalls_(stalls),
      cache_bytes_(cache_bytes),
      op_(op),
      call_(op.staging->host_call()),
      slices_(slices),
      wait_(node, stalls, op),
      first_slice_(first),
      bypasses_cache_(program_bytes(call_, node.rank(), node.size()) > cache_bytes / 2) {}

void HostCollective::post_once() {
  if (op_.lane.posted(op_.number)) return;
  post(node_, op_);
  ring_if_all_posted(node_, op_);
}

void HostCollective::check_access() const {
  const int ranks = node_.size();
  const int rank = node_.rank();
  const auto is_on_host = [](std::uint64_t address) { return !device::is_device_address(address); };
  if (sends(call_, rank) && is_on_host(call_.send)) {
    device::require_host_access(call_.send, send_bytes(call_, ranks), device::HostAccess::read,
                                "send buffer");
  }
  if (receives(call_, rank) && !keeps_own_data(call_, rank) && is_on_host(call_.recv)) {
    device::require_host_access(call_.recv, recv_bytes(call_, ranks), device::HostAccess::write,
                                "receive buffer");
  }
}

bool HostCollective::all_on_host() const {
  if (!calls_match(op_.lane, op_.call, node_.size())) {
    raise_mismatch(node_, op_);
    node_.fault().throw_error();
  }
  return all_use_host_memory(node_, op_);
}

AddressRange HostCollective::result_of(const CollectiveCall& call) const {
  const bool writes = receives(call, node_.rank()) && !keeps_own_data(call, node_.rank());
  return {call.recv, writes ? recv_bytes(call, node_.size()) : 0};
}

bool HostCollective::can_read_early(const CollectiveCall& next,
                                    std::span<const AddressRange> results) const {
  const int rank = node_.rank();
  const int ranks = node_.size();
  if (!needs_staging(next, rank, ranks)) return false;
  const AddressRange source{next.send, sends(next, rank) ? send_bytes(next, ranks) : 0};
  const auto overlaps = [&](const AddressRange& result) { return result.overlaps(source); };
  if (std::ranges::any_of(results, overlaps)) return false;
  const bool uses_device = (source.bytes != 0 && device::is_device_address(next.send)) ||
                           (receives(next, rank) && device::is_device_address(next.recv));
  return !uses_device && (source.bytes == 0 || device::has_host_access(source.first, source.bytes,
                                                                       device::HostAccess::read));
}

bool HostCollective::can_post_early(const CollectiveOperation& next) const {
  device::Arena& arena = node_.arena();
  return next.recv_bytes == 0 ||
         arena.view()->populated(arena.file_offset(next.call.recv), next.recv_bytes);
}

void HostCollective::await_posts() {
  PostedRanks ranks(op_.lane, node_.size());
  const auto ended = [&] { return ranks.all_posted() || op_.lane.failed(); };
  if (!ended()) wait_.wait_until(ended);
  if (!ranks.all_posted()) node_.fault().throw_error();
}

void HostCollective::await(Counter counter, std::uint32_t count, AwaitedRanks ranks) {
  const auto have_reached = [&] {
    for (int rank = 0; rank < node_.size(); ++rank) {
      const bool is_awaited = ranks == AwaitedRanks::all || sends(call_, rank);
      if (is_awaited && !reached(rank, counter, count)) return false;
    }
    return true;
  };
  if (have_reached()) return;
  op_.awaited_counter = counter;
  op_.awaited_count = count;
  op_.awaited_ranks = ranks;
  wait_.wait_until([&] { return have_reached() || op_.lane.failed(); });
  op_.awaited_counter = nullptr;
  if (!have_reached()) node_.fault().throw_error();
}

bool HostCollective::reached(int rank, Counter counter, std::uint32_t count) const {
  const SliceCounters& counters = op_.lane.slice_counters(rank);
  return !precedes((counters.*counter).load(std::memory_order_seq_cst), count);
}

bool HostCollective::all_reached(Counter counter, std::uint32_t count) const {
  for (int rank = 0; rank < node_.size(); ++rank) {
    if (!reached(rank, counter, count)) return false;
  }
  return true;
}

void HostCollective::publish(Counter counter, std::uint32_t count) {
  (op_.lane.slice_counters(node_.rank()).*counter).store(count, std::memory_order_seq_cst);
  op_.lane.block().bell.ring();
}

void HostCollective::copy_own_chunk(const Slice& slice) const {
  const CollectiveTraits& traits = call_.traits();
  const int rank = node_.rank();
  if (traits.reduces || !sends(call_, rank) || !receives(call_, rank)) return;
  const std::uint64_t from =
      call_.send + (traits.has_blocks_in_input ? slices_.offset_of(rank) : 0) + slice.first_byte;
  const std::uint64_t to =
      call_.recv + (traits.has_blocks_in_output ? slices_.offset_of(rank) : 0) + slice.first_byte;
  if (from == to) return;
  if (device::is_device_address(to)) {  // at the root of a broadcast
    device::copy_to_device(node_.arena(), to, host_pointer(from), slice.bytes);
  } else {
    copy_on_host(host_pointer(to), host_pointer(from), slice.bytes, bypasses_cache_);
  }
}

void copy_on_host(std::byte* to, const std::byte* from, std::uint64_t bytes, bool bypasses_cache) {
  reduce::copy_tile(from, {&to, 1}, bytes,
                    bypasses_cache ? reduce::StorePolicy::streaming : reduce::StorePolicy::cached);
}

}  // namespace hccl::node
