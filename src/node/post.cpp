// SPDX-License-Identifier: Apache-2.0
// Posts a rank's part of an operation: its descriptor and, if it is short, its data. A rank that
// has to wait also posts its part of the next operations, so that ranks which share a core take
// turns once in many operations.
#include "node/address_range.h"
#include "node/operation.h"

#include <algorithm>
#include <array>

namespace hccl::node {
// Returns what a source of this rank holds. Maps its pages if it holds data.
device::Content Engine::resolve_content(std::uint64_t file_offset, std::uint64_t bytes) {
  device::ArenaView& memory = *arena_.view();
  if (memory.populated(file_offset, bytes)) return device::Content::data;
  const device::Content content = memory.content(file_offset, bytes);
  if (content == device::Content::data) memory.populate(file_offset, bytes, false);
  return content;
}

void Engine::publish(Operation& op) const {
  Slot& slot = op.lane.slot(op.number, rank_);
  slot.collective = static_cast<std::uint8_t>(op.call.collective);
  slot.type = op.call.type;
  slot.operation = op.call.operation;
  slot.memory =
      pack_memory(static_cast<std::uint8_t>(op.content), op.stages_send(), op.stages_recv());
  slot.root = op.call.root;
  slot.count = op.call.count;
  slot.send_offset = op.send.file_offset;
  slot.recv_offset = op.recv.file_offset;
  slot.send_serial = op.send.serial;
  slot.recv_serial = op.recv.serial;
  slot.slice.store(0, std::memory_order_relaxed);
  // Sequentially consistent, like the sleepers' registration: either they see the number or we see
  // them.
  slot.number.store(op.number, std::memory_order_seq_cst);
  op.lane.set_brought(op.number);
}

void Engine::post(Operation& op) {
  if (op.eager()) {  // names no memory: peers touch the slot alone
    if (op.send_bytes != 0)
      op.content = load(op.call.send, op.send_bytes, op.lane.slot(op.number, rank_).payload);
  } else {
    if (op.recv_bytes != 0) {
      op.recv = arena_.place(op.call.recv);
      arena_.view()->populate(op.recv.file_offset, op.recv_bytes, true);
    }
    if (op.send_bytes != 0) {
      op.send = arena_.place(op.call.send);
      op.content = resolve_content(op.send.file_offset, op.send_bytes);
    }
  }
  publish(op);
}

void Engine::ring_if_complete(const Operation& op) {
  Doorbell& bell = op.lane.block().bell;
  if (bell.has_sleepers() && all_arrived(op.lane, op.number)) bell.ring_always();
}

bool Engine::all_arrived(const Lane& lane, std::uint32_t number) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!lane.arrived(number, rank)) return false;
  }
  return true;
}

// Returns whether bringing the part could need pages. That may fail, and would be the other
// operation's error.
bool Engine::in_page_tables(const Operation& op) {
  device::ArenaView& memory = *arena_.view();
  const auto populated = [&](std::uint64_t address, std::uint64_t bytes) {
    return bytes == 0 || memory.populated(arena_.place(address).file_offset, bytes);
  };
  return populated(op.call.send, op.send_bytes) &&
         (op.eager() || populated(op.call.recv, op.recv_bytes));
}

// Posts this rank's part of the calls behind `op` that take the same path. Cooperative operations
// read and write only once all before them are complete. Eager ones read now: the first that reads
// what an earlier one stores has to wait for its turn, and so has a barrier.
void Engine::prepost(Operation& op) {
  if (op.ahead == nullptr || op.looked_ahead || op.lane.posted(op.number + kMostAhead / 2)) return;
  if (fault_.raised()) return;  // numbers pass unfinished from now on, and slots must not be reused
  op.looked_ahead = true;
  std::array<AddressRange, kMostAhead> unfinished;
  AddressRange result{op.call.recv, op.recv_bytes};
  for (std::uint32_t distance = 1; distance <= kMostAhead; ++distance) {
    unfinished[distance - 1] = result;
    const CollectiveCall* const call = op.ahead->next();
    if (call == nullptr || call->collective == Collective::barrier) return;
    Operation next(op.lane, *call, rank_, size_, op.number + distance);
    result = {call->recv, next.recv_bytes};
    if (op.lane.posted(next.number)) continue;
    if (next.eager() != op.eager() || !in_page_tables(next)) return;
    if (next.eager()) {
      const AddressRange source{call->send, next.send_bytes};
      const auto end = unfinished.begin() + distance;
      if (std::any_of(unfinished.begin(), end, [&](const auto& r) { return r.overlaps(source); }))
        return;
    }
    post(next);
    ring_if_complete(next);
  }
}

}  // namespace hccl::node
