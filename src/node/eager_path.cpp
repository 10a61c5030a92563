// SPDX-License-Identifier: Apache-2.0
// Computes the result chunk by chunk, by copying or reducing.
#include "node/eager_path.h"

#include "device/host_memory.h"
#include "node/call_match.h"
#include "node/chunk_map.h"
#include "node/operation_wait.h"
#include "node/post.h"
#include "reduce/reduce.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hccl::node {

EagerOutcome EagerPath::run() {
  Lane& lane = op_.lane;
  if (!lane.posted(op_.number)) {
    check_result();
    post(node_, op_);
    ring_if_all_posted(node_, op_);
  }
  PostedRanks ranks(lane, node_.size());
  if (!ranks.all_posted()) {
    prepost(node_, op_);
    OperationWait wait(node_, stalls_, op_);
    const auto ended = [&] { return ranks.all_posted() || lane.failed(); };
    if (!wait.wait_until(ended, op_.wait_budget())) return EagerOutcome::suspended;
    if (!ranks.all_posted()) node_.fault().throw_error();
  }
  if (!calls_match(lane, op_.call, node_.size())) {
    raise_mismatch(node_, op_);
    node_.fault().throw_error();
  }
  if (!op_.eager() && !all_use_host_memory(node_, op_)) return EagerOutcome::other_path;
  if (op_.writes_result(node_.rank())) store_result();
  return EagerOutcome::complete;
}

const std::byte* EagerPath::payload(int rank) const {
  if (!op_.eager()) return op_.lane.host_payload(op_.number, rank);
  const Slot& slot = op_.lane.slot(rank);
  if (!continues(slot.memory)) return slot.payload;
  const std::byte* const last = op_.lane.last_result();
  if (last == nullptr) node_.fault().throw_error();  // the previous operation has failed
  return last;
}

void EagerPath::check_result() const {
  const std::uint64_t address = op_.host_call().recv;
  if (!op_.writes_result(node_.rank()) || device::is_device_address(address)) return;
  device::require_host_access(address, op_.recv_bytes, device::HostAccess::write, "receive buffer");
}

std::byte* EagerPath::accessible_result() const {
  const std::uint64_t address = op_.host_call().recv;
  if (!device::is_device_address(address)) return reinterpret_cast<std::byte*>(address);
  device::Arena& arena = node_.arena();
  device::ArenaView& memory = *arena.view();
  const std::uint64_t at = arena.locate(address).file_offset;
  if (!memory.populated(at, op_.recv_bytes)) memory.populate(at, op_.recv_bytes, true);
  return memory.at(at);
}

void EagerPath::store_result() const {
  std::byte* destination = accessible_result();
  const ChunkMap map(op_.call, node_.size());
  const std::size_t bytes = op_.slicing.buffer_bytes(false, 1);
  const int chunks = recv_chunks(op_.call, node_.size());
  for (int chunk = 0; chunk < chunks; ++chunk, destination += bytes) {
    const RankChunks from = map.sources(node_.rank(), chunk);
    std::array<const std::byte*, kMaxRanks> sources;
    std::size_t count = 0;
    for (int rank = from.first_rank; rank < from.end_rank; ++rank) {
      sources[count++] = payload(rank) + static_cast<std::size_t>(from.chunk) * bytes;
    }
    if (count == 1) {
      std::memcpy(destination, sources[0], bytes);
    } else {
      reduce::reduce_tile(op_.call.data_type(), op_.call.reduction(), {sources.data(), count},
                          {&destination, 1}, op_.call.count, reduce::StorePolicy::cached);
    }
  }
  // Needed if a rank's next operation continues from this result, and so posts no data (post.cpp).
  if (op_.eager() && op_.call.collective == Collective::all_reduce)
    op_.lane.keep_result(destination - bytes, bytes);
}

}  // namespace hccl::node
