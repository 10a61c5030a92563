// SPDX-License-Identifier: Apache-2.0
// One tile of a larger operation: where its sources and destinations lie in the ranks' memory, and
// the kernel that folds or copies them.
#include "node/operation.h"
#include "reduce/reduce.h"

#include <array>
#include <cstring>

namespace hccl::node {
namespace {

// Tiles read these zeros in place of memory that nobody ever wrote, so holes stay holes.
alignas(4096) const std::byte kZeros[TilePlan::kLongestTile]{};

}  // namespace

// Calls visit(memory, offset, bytes, write) for the buffers of every peer that this operation may
// touch, until it returns false. Returns whether it never did.
template <class Visit>
bool Engine::for_peer_buffers(const Operation& op, Visit visit) {
  const int from_chunks = send_chunks(op.call, size_);
  const int to_chunks = recv_chunks(op.call, size_);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const Slot& slot = op.lane.slot(rank);
    device::ArenaView& memory = segment_.memory(rank);
    if (receives(op.call, rank) &&
        !visit(memory, slot.recv_offset,
               op.slicing.buffer_bytes(recv_is_stage(slot.memory), to_chunks), slot.recv_serial,
               true))
      return false;
    const bool is_data =
        content_in(slot.memory) == static_cast<std::uint8_t>(device::Content::data);
    if (sends(op.call, rank) && is_data &&
        !visit(memory, slot.send_offset,
               op.slicing.buffer_bytes(send_is_stage(slot.memory), from_chunks), slot.send_serial,
               false))
      return false;
  }
  return true;
}

// Without page tables filled in advance, tiles of reused buffers take page faults for hundreds of
// calls, until every process has met every page. So buffers seen for the second time are mapped as
// a whole; those seen for the first time only tile by tile, because most processes will never touch
// most of their pages. False: the operation ended meanwhile.
bool Engine::map_peers(Operation& op) {
  op.mapped = for_peer_buffers(op, [](device::ArenaView& memory, std::uint64_t offset,
                                      std::uint64_t bytes, std::uint32_t serial, bool) {
    memory.follow(offset, bytes, serial);
    return memory.populated(offset, bytes);
  });
  const device::Placement& own = op.recv_bytes != 0 ? op.recv : op.send;
  if (op.mapped || !op.lane.seen_before(own.file_offset, own.serial)) return true;
  const std::uint32_t open = op.lane.state_word(LaneBlock::open);
  op.mapped = for_peer_buffers(op, [&](device::ArenaView& memory, std::uint64_t offset,
                                       std::uint64_t bytes, std::uint32_t serial, bool write) {
    memory.follow(offset, bytes, serial);
    std::uint64_t position = 0;
    while (!memory.populate_slice(offset, bytes, write, &position)) {
      if (op.lane.block().state.load(std::memory_order_acquire) != open) return false;
    }
    return true;
  });
  return op.mapped;
}

// Measured: up to here plain stores still find enough of their lines in the caches, in the upper
// part line by line. Where little is written for much that is read, it is better to leave the
// caches to the latter sooner; where it is the other way round, later.
reduce::StorePolicy Engine::store_policy(const Operation& op) const {
  if (op.slicing.slices() > 1) return reduce::StorePolicy::cached;  // stages are read at once
  const auto senders = static_cast<std::uint64_t>(hccl::senders(op.call, size_));
  const auto receivers = static_cast<std::uint64_t>(hccl::receivers(op.call, size_));
  const std::uint64_t read = op.part_bytes * senders;
  const std::uint64_t written = recv_bytes(op.call, size_) * receivers;
  std::uint64_t most = cache_bytes_ / 2 * 3;
  if (2 * written <= read) most = cache_bytes_;
  if (2 * read <= written) most = cache_bytes_ / 2 * 5;
  if (read + written > most) return reduce::StorePolicy::streaming;
  return read + written > cache_bytes_ / 2 ? reduce::StorePolicy::interleaved
                                           : reduce::StorePolicy::cached;
}

const std::byte* Engine::source(const Operation& op, int rank, int chunk, const Tile& tile) {
  const Slot& slot = op.lane.slot(rank);
  const std::uint64_t offset =
      op.slicing.offset_in(send_is_stage(slot.memory), chunk, op.slice_number) + tile.first_byte;
  return readable(rank, slot.send_offset + offset, tile.bytes,
                  static_cast<device::Content>(content_in(slot.memory)), op.mapped);
}

// At most kLongestTile bytes of a rank's memory whose `content` the rank has told; `mapped` if all
// of it is in this process's page tables.
const std::byte* Engine::readable(int rank, std::uint64_t at, std::uint64_t bytes,
                                  device::Content content, bool mapped) {
  device::ArenaView& memory = segment_.memory(rank);
  if (content == device::Content::hole) return kZeros;
  if (content == device::Content::mixed && memory.is_hole(at, bytes)) return kZeros;
  if (!mapped) memory.populate(at, bytes, false);
  return memory.at(at);
}

std::byte* Engine::destination(const Operation& op, int rank, int chunk, const Tile& tile) {
  device::ArenaView& memory = segment_.memory(rank);
  const Slot& slot = op.lane.slot(rank);
  const std::uint64_t at = slot.recv_offset + tile.first_byte +
                           op.slicing.offset_in(recv_is_stage(slot.memory), chunk, op.slice_number);
  if (!op.mapped) memory.populate(at, tile.bytes, true);
  return memory.at(at);
}

void Engine::run_tile(Operation& op, std::uint32_t number) {
  if (op.call.collective == Collective::all_to_all) return exchange_tile(op, op.plan->tile(number));
  const Tile tile = op.plan->tile(number);
  std::array<const std::byte*, kMostRanks> sources;
  std::array<std::byte*, kMostRanks> destinations;
  std::size_t source_count = 0;
  std::size_t destination_count = 0;
  const auto from = [&](int rank, int chunk = 0) {
    sources[source_count++] = source(op, rank, chunk, tile);
  };
  const auto to = [&](int rank, int chunk = 0) {
    destinations[destination_count++] = destination(op, rank, chunk, tile);
  };
  switch (op.call.collective) {
    case Collective::barrier:
    case Collective::point_to_point:
    case Collective::all_to_all:
      return;
    case Collective::all_reduce:
      for (int rank = 0; rank < size_; ++rank) {
        from(rank);
        to(rank);
      }
      break;
    case Collective::reduce:
      for (int rank = 0; rank < size_; ++rank) from(rank);
      to(op.call.root);
      break;
    case Collective::reduce_scatter:
      for (int rank = 0; rank < size_; ++rank) from(rank, tile.chunk);
      to(tile.chunk);
      break;
    case Collective::broadcast:
      from(op.call.root);
      for (int rank = 0; rank < size_; ++rank) to(rank);
      break;
    case Collective::all_gather:
      from(tile.chunk);
      for (int rank = 0; rank < size_; ++rank) to(rank, tile.chunk);
      break;
  }
  if (source_count == 1) {
    reduce::copy_tile(sources[0], {destinations.data(), destination_count}, tile.bytes,
                      store_policy(op));
  } else {
    reduce::reduce_tile(op.call.data_type(), op.call.reduction(), {sources.data(), source_count},
                        {destinations.data(), destination_count},
                        reduce::elements_in(op.call.data_type(), tile.bytes), store_policy(op));
  }
}

// Both directions of a pair at once: in place, each part lies where the other has to go.
void Engine::exchange_tile(Operation& op, const Tile& tile) {
  alignas(64) thread_local std::array<std::byte, TilePlan::kLongestPairTile> aside;
  const auto policy = store_policy(op);
  const int rank = tile.chunk;
  for (int peer = tile.first_peer; peer < tile.end_peer; ++peer) {
    const std::byte* const outgoing = source(op, rank, peer, tile);
    std::byte* const at_peer = destination(op, peer, rank, tile);
    if (peer == rank) {
      if (outgoing != at_peer) reduce::copy_tile(outgoing, {&at_peer, 1}, tile.bytes, policy);
      continue;
    }
    const std::byte* const incoming = source(op, peer, rank, tile);
    std::byte* const at_rank = destination(op, rank, peer, tile);
    if (incoming != at_peer) {
      reduce::copy_tile(outgoing, {&at_peer, 1}, tile.bytes, policy);
      reduce::copy_tile(incoming, {&at_rank, 1}, tile.bytes, policy);
    } else {
      std::memcpy(aside.data(), incoming, tile.bytes);
      reduce::copy_tile(outgoing, {&at_peer, 1}, tile.bytes, policy);
      std::memcpy(at_rank, aside.data(), tile.bytes);
    }
  }
}

}  // namespace hccl::node
