// SPDX-License-Identifier: Apache-2.0
// The path of small operations: every rank puts its data into its slot and computes its own result
// from all slots.
#include "device/copy.h"
#include "node/waiting.h"
#include "reduce/reduce.h"

#include <array>
#include <cstring>

namespace hccl::node {

// Copies what this rank sends, allocating nothing where it is a hole.
device::Content Engine::load(device::DeviceAddress address, std::uint64_t bytes,
                             std::byte* payload) {
  const std::uint64_t file_offset = arena_.place(address).file_offset;
  const device::Content content = resolve_content(file_offset, bytes);
  if (content == device::Content::data) {
    std::memcpy(payload, arena_.view()->at(file_offset), bytes);
  } else {
    device::copy_to_host(arena_, payload, address, bytes);
  }
  return content;
}

bool Engine::run_eager(Operation& op) {
  Lane& lane = op.lane;
  if (!lane.posted(op.number)) {
    if (op.staging != nullptr) op.staging->fill(op.slice());
    post(op);
    ring_if_complete(op);
  }
  Everybody everybody(lane, size_);
  if (!everybody.arrived()) {
    prepost(op);
    const auto ended = [&] { return everybody.arrived() || lane.failed(); };
    if (!wait(op, ended, op.wait_budget())) return false;
    if (!everybody.arrived()) fault_.throw_error();
  }
  if (!descriptors_agree(op)) {
    fault_.raise(hcclInvalidUsage, mismatch_text(op));
    fault_.throw_error();
  }
  if (op.recv_bytes != 0) store_eager_result(op);
  if (op.staging != nullptr) op.staging->drain(op.slice());
  return true;
}

void Engine::store_eager_result(const Operation& op) {
  device::ArenaView& memory = *arena_.view();
  const std::uint64_t at = arena_.place(op.call.recv).file_offset;
  if (!memory.populated(at, op.recv_bytes)) memory.populate(at, op.recv_bytes, true);
  std::byte* destination = memory.at(at);
  std::array<const std::byte*, kMostRanks> payloads;
  for (int rank = 0; rank < size_; ++rank) {
    payloads[static_cast<std::size_t>(rank)] = op.lane.slot(rank).payload;
  }
  const std::span<const std::byte*> sources(payloads.data(), static_cast<std::size_t>(size_));
  switch (op.call.collective) {
    case Collective::barrier:
    case Collective::point_to_point:  // exchange.h
      break;
    case Collective::all_to_all:
      for (std::size_t rank = 0; rank < sources.size(); ++rank) {
        const std::size_t part = op.part_bytes / sources.size();
        std::memcpy(destination + rank * part,
                    sources[rank] + static_cast<std::size_t>(rank_) * part, part);
      }
      break;
    case Collective::broadcast:
      std::memcpy(destination, sources[static_cast<std::size_t>(op.call.root)], op.recv_bytes);
      break;
    case Collective::all_gather:
      for (std::size_t rank = 0; rank < sources.size(); ++rank) {
        std::memcpy(destination + rank * op.part_bytes, sources[rank], op.part_bytes);
      }
      break;
    case Collective::reduce_scatter:
      for (const std::byte*& source : sources)
        source += static_cast<std::size_t>(rank_) * op.recv_bytes;
      [[fallthrough]];
    case Collective::all_reduce:
    case Collective::reduce:
      reduce::reduce_tile(op.call.data_type(), op.call.reduction(), sources, {&destination, 1},
                          op.call.count, reduce::StorePolicy::cached);
  }
}

}  // namespace hccl::node
