// SPDX-License-Identifier: Apache-2.0
// Messages from and to host memory, which peers cannot map. Short ones go through the mailbox like
// all. A long one to host memory is read from the sender's memory by the kernel. A long one from
// host memory goes through the two halves of the sender's stage, piece by piece, as soon as its
// receiver is ready for it: so one stage serves all sends of a group, whatever their order.
#include "device/copy.h"
#include "node/exchange.h"
#include "node/slicing.h"

#include <algorithm>
#include <cstring>

namespace hccl::node {
namespace {

std::uint64_t half_of_stage(std::uint64_t position) {
  return position / kStageBytes % 2 * kStageBytes;
}

const void* host_source(const PointToPoint& call, std::uint64_t position) {
  return reinterpret_cast<const void*>(call.address + position);
}

void* host_destination(const PointToPoint& call, std::uint64_t position) {
  return reinterpret_cast<void*>(call.address + position);
}

}  // namespace

void Engine::Exchange::load_from_host(const PointToPoint& call, Message& message) {
  if (call.bytes() <= Message::kPayloadBytes) {
    const device::DeviceAddress aside = stage_ + kShortMessages;
    device::copy_to_device(engine_.arena_, aside, host_source(call, 0), call.bytes());
    engine_.load(aside, call.bytes(), message.payload);
    return;
  }
  message.content = Message::kStreamed;
  MessageStream& stream = message.stream();
  stream.wanted.store(0, std::memory_order_relaxed);
  stream.filled.store(0, std::memory_order_relaxed);
  stream.drained.store(0, std::memory_order_relaxed);
}

// Returns whether the next piece of a send that was offered can go to the stage.
bool Engine::Exchange::can_fill(const Item& item) const {
  // First what is known here: once the message is taken, its entry may be that of another.
  const std::uint64_t bytes = item.bytes;
  if (bytes <= Message::kPayloadBytes || item.moved == bytes ||
      device::is_device_address(item.call->address))
    return false;
  if (fills_ != nullptr && fills_ != &item) return false;
  MessageStream& stream = item.message->stream();
  return stream.wanted.load(std::memory_order_seq_cst) != 0 &&
         item.moved - stream.drained.load(std::memory_order_seq_cst) <= kStageBytes;
}

void Engine::Exchange::fill(Item& item) {
  const PointToPoint& call = *item.call;
  Message& message = *item.message;
  if (item.moved == 0) {
    fills_ = &item;
    const device::Placement place = engine_.arena_.place(stage_);
    message.offset = place.file_offset;
    message.serial = place.serial;
  }
  const std::uint64_t piece = std::min(kStageBytes, item.bytes - item.moved);
  const device::DeviceAddress half = stage_ + half_of_stage(item.moved);
  device::populate_for_copies(engine_.arena_, half, piece);
  device::copy_to_device(engine_.arena_, half, host_source(call, item.moved), piece);
  item.moved += piece;
  message.stream().filled.store(item.moved, std::memory_order_seq_cst);
  record(call.peer).mail.ring();
}

void Engine::Exchange::begin_draining(Item& item) {
  begin_taking(item);
  item.state = State::draining;
  item.message->stream().wanted.store(1, std::memory_order_seq_cst);
  record(item.call->peer).mail.ring();
}

// Takes the pieces that are in the sender's stage.
void Engine::Exchange::drain(Item& item) {
  MessageStream& stream = item.message->stream();
  device::ArenaView& theirs = engine_.segment_.memory(item.call->peer);
  while (item.moved < stream.filled.load(std::memory_order_seq_cst)) {
    const std::uint64_t bytes = std::min(kStageBytes, item.bytes - item.moved);
    const std::uint64_t from = item.message->offset + half_of_stage(item.moved);
    if (!theirs.populated(from, bytes)) theirs.populate(from, bytes, false);
    copy_piece(item, {item.moved, bytes, from, device::Content::data});
    item.moved += bytes;
    stream.drained.store(item.moved, std::memory_order_seq_cst);
    record(item.call->peer).mail.ring();
  }
}

void Engine::Exchange::copy_to_host(const Item& item, const Piece& piece) {
  const PointToPoint& call = *item.call;
  device::ArenaView& theirs = engine_.segment_.memory(call.peer);
  for (std::uint64_t done = 0; done < piece.bytes; done += kStageBytes) {
    if (engine_.fault_.raised()) engine_.fault_.throw_error();
    device::copy_to_host(theirs, host_destination(call, piece.position + done), piece.offset + done,
                         std::min(kStageBytes, piece.bytes - done));
  }
}

void Engine::Exchange::copy_short_to_host(const Item& item) {
  const device::DeviceAddress aside = stage_ + kShortMessages;
  const std::uint64_t offset = engine_.arena_.place(aside).file_offset;
  device::ArenaView& mine = *engine_.arena_.view();
  mine.populate(offset, item.bytes, true);
  std::memcpy(mine.at(offset), item.message->payload, item.bytes);
  device::copy_to_host(mine, host_destination(*item.call, 0), offset, item.bytes);
}

}  // namespace hccl::node
