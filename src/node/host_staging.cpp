// SPDX-License-Identifier: Apache-2.0
// Copies host memory to the staging buffer and back. An invalid address causes an error, not a
// signal.
#include "node/host_staging.h"

#include "node/control_block.h"

namespace hccl::node {
namespace {

bool sends_host_memory(const CollectiveCall& call, int rank, int ranks) {
  return !device::is_device_address(call.send) && sends(call, rank) && send_bytes(call, ranks) != 0;
}

bool receives_host_memory(const CollectiveCall& call, int rank, int ranks) {
  return !device::is_device_address(call.recv) && receives(call, rank) &&
         !keeps_own_data(call, rank) && recv_bytes(call, ranks) != 0;
}

}  // namespace

bool uses_host_memory(const CollectiveCall& call, int rank, int ranks) {
  return sends_host_memory(call, rank, ranks) || receives_host_memory(call, rank, ranks);
}

bool is_on_host(const CollectiveCall& call, int rank, bool send_is_staged, bool recv_is_staged) {
  const bool only_sends = call.traits().senders == RankSet::root && rank == call.root;
  return (send_is_staged || !sends(call, rank)) &&
         (recv_is_staged || only_sends || !receives(call, rank));
}

bool uses_only_host_memory(const CollectiveCall& call, int rank, int ranks) {
  return is_on_host(call, rank, sends_host_memory(call, rank, ranks),
                    receives_host_memory(call, rank, ranks));
}

bool needs_staging(const CollectiveCall& call, int rank, int ranks) {
  return send_bytes(call, ranks) > Slot::kPayloadBytes && uses_host_memory(call, rank, ranks);
}

bool uses_host_memory(const PointToPoint& call) {
  return !device::is_device_address(call.address) && call.bytes() != 0;
}

HostStaging::HostStaging(device::Arena& arena, device::DeviceAddress buffer,
                         const CollectiveCall& call, int rank, int ranks)
    : arena_(arena),
      buffer_(buffer),
      call_(call),
      slicing_(call, ranks, true),
      ranks_(ranks),
      stages_send_(sends_host_memory(call, rank, ranks)),
      drains_(receives_host_memory(call, rank, ranks)),
      stages_recv_(drains_ || (stages_send_ && call.send == call.recv)),
      staged_(call) {
  if (stages_send_) staged_.send = buffer;
  // An in-place call stays in place: one half of the staging buffer serves both directions.
  const bool in_place = stages_send_ && call.send == call.recv;
  if (stages_recv_) staged_.recv = in_place ? buffer : buffer + kStagingHalfBytes;
}

void HostStaging::fill(const Slice& slice) {
  if (!stages_send_) return;
  if (send_check_ == device::HostCheck::by_copy) {
    send_check_ = device::recheck_host_buffer(call_.send, send_bytes(call_, ranks_),
                                              device::HostAccess::read);
  }
  for (int chunk = 0; chunk < send_chunks(call_, ranks_); ++chunk) {
    const std::uint64_t from = call_.send + slicing_.buffer_bytes(false, chunk) + slice.first_byte;
    const device::DeviceAddress to = staged_.send + slicing_.buffer_bytes(true, chunk);
    device::populate_for_copies(arena_, to, slice.bytes);
    device::copy_to_device(arena_, to, reinterpret_cast<const void*>(from), slice.bytes,
                           send_check_);
  }
}

void HostStaging::drain(const Slice& slice) {
  if (!drains_) return;
  if (recv_check_ == device::HostCheck::by_copy) {
    recv_check_ = device::recheck_host_buffer(call_.recv, recv_bytes(call_, ranks_),
                                              device::HostAccess::write);
  }
  for (int chunk = 0; chunk < recv_chunks(call_, ranks_); ++chunk) {
    const std::uint64_t to = call_.recv + slicing_.buffer_bytes(false, chunk) + slice.first_byte;
    const device::DeviceAddress from = staged_.recv + slicing_.buffer_bytes(true, chunk);
    device::populate_for_copies(arena_, from, slice.bytes);
    device::copy_to_host(arena_, reinterpret_cast<void*>(to), from, slice.bytes, recv_check_);
  }
}

}  // namespace hccl::node
