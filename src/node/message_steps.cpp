// SPDX-License-Identifier: Apache-2.0
// A send is complete when the receiver has taken the message: the receiver has then found no
// mismatch, and the sender's program may reuse the buffer.
#include "node/message_steps.h"

#include "base/text.h"
#include "device/copy.h"
#include "node/rank_memory.h"
#include "node/slicing.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace hccl::node {
namespace {

using State = MessageItem::State;

std::uint64_t staging_half(std::uint64_t position) {
  return position / kStagingHalfBytes % 2 * kStagingHalfBytes;
}

const void* host_source(const PointToPoint& call, std::uint64_t position) {
  return reinterpret_cast<const void*>(call.address + position);
}

}  // namespace

MessageItem MessageSteps::make_item(const PointToPoint& call) const {
  Mailbox& mailbox = mailboxes_.of(call);
  return {&call, &mailbox, &mailbox.message(call.number), call.bytes()};
}

bool MessageSteps::is_streamed(const MessageItem& item) {
  return item.message->content == Message::kStreamed && item.bytes > Message::kPayloadBytes;
}

bool MessageSteps::matches(const MessageItem& item) {
  return item.message->count == item.call->count && item.message->type == item.call->type;
}

bool MessageSteps::is_in_page_tables(MessageItem& item) const {
  return item.bytes == 0 ||
         node_.arena().view()->populated(copier_.locate(item).file_offset, item.bytes);
}

bool MessageSteps::ready(const MessageItem& item) const {
  const std::uint64_t number = item.call->number;
  // Sequentially consistent, because a thread repeats this check after it has registered as a
  // sleeper.
  if (item.state == State::draining)
    return item.message->stream().filled.load(std::memory_order_seq_cst) > item.moved;
  if (!item.sends()) return item.message->offered.load(std::memory_order_seq_cst) == number + 1;
  const std::uint64_t taken = item.mailbox->receipt(number).taken.load(std::memory_order_seq_cst);
  if (item.state == State::offered)  // a later message of the entry may have been taken too
    return taken > number || can_fill(item);
  return number < Mailbox::kMessages || taken == number + 1 - Mailbox::kMessages;
}

void MessageSteps::advance(MessageItem& item) {
  if (item.sends()) {
    if (item.state == State::begun) return offer(item);
    if (can_fill(item)) return fill(item);
    if (filling_ == &item) filling_ = nullptr;
    item.state = State::done;
  } else if (item.state == State::draining) {
    drain(item);
  } else {
    if (!matches(item)) throw_mismatch(item);
    if (is_streamed(item)) return begin_draining(item);
    take(item);
  }
}

void MessageSteps::offer(MessageItem& item) {
  const PointToPoint& call = *item.call;
  Message& message = *item.message;
  // The previous message of this entry may belong to another stream. Only the peer's process orders
  // the two messages. A race detector does not see that order, so this load makes it explicit.
  static_cast<void>(message.offered.load(std::memory_order_acquire));
  message.type = call.type;
  message.count = call.count;
  message.content = static_cast<std::uint8_t>(device::Content::data);
  if (item.bytes != 0 && !device::is_device_address(call.address)) {
    load_from_host(call, message);
  } else if (item.bytes <= Message::kPayloadBytes) {
    if (item.bytes != 0) load(node_.arena(), call.address, item.bytes, message.payload);
  } else {
    const device::Placement& from = copier_.locate(item);
    message.content =
        static_cast<std::uint8_t>(resolve_content(node_.arena(), from.file_offset, item.bytes));
    message.offset = from.file_offset;
    message.serial = from.serial;
  }
  message.offered.store(call.number + 1, std::memory_order_release);
  item.state = State::offered;
  ring_later(call.peer);
}

// One fence for all peers orders the stores before the checks for sleepers.
void MessageSteps::ring_peers() {
  if (peers_to_ring_ == 0) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (; peers_to_ring_ != 0; peers_to_ring_ &= peers_to_ring_ - 1)
    node_.record(std::countr_zero(peers_to_ring_)).mail.ring();
}

void MessageSteps::throw_mismatch(const MessageItem& item) {
  const PointToPoint& call = *item.call;
  PointToPoint theirs = call;
  theirs.direction = Direction::send;
  theirs.peer = node_.rank();
  theirs.count = item.message->count;
  theirs.type = item.message->type;
  node_.fault().raise(
      hcclInvalidUsage,
      text("message ", call.number, ": rank ", call.peer, ' ', describe(theirs), " but rank ",
           node_.rank(), ' ', describe(call), "; both must pass the same count and type"));
  node_.fault().throw_error();
}

void MessageSteps::prepare_destination(MessageItem& item) {
  const PointToPoint& call = *item.call;
  // As in offer(): the previous message of this entry may have been taken on another stream.
  static_cast<void>(item.mailbox->receipt(call.number).taken.load(std::memory_order_acquire));
  if (item.bytes == 0 || !device::is_device_address(call.address)) return;
  if (is_in_page_tables(item)) return;
  node_.arena().view()->populate(item.at.file_offset, item.bytes, true);
}

void MessageSteps::take(MessageItem& item) {
  prepare_destination(item);
  const bool takes_long = item.bytes > MessageCopier::kLongCopy;
  if (takes_long) ring_peers();
  if (item.bytes > Message::kPayloadBytes) {
    copier_.copy_piece(item, {0, item.bytes, item.message->offset,
                              static_cast<device::Content>(item.message->content)});
  } else if (item.bytes != 0) {
    copier_.copy_short(item);
  }
  finish(item);
  if (takes_long) ring_peers();
}

void MessageSteps::finish(MessageItem& item) {
  // The sender's program may reuse its buffer after the communicator has failed, so the copy is
  // valid only if no fault was raised before the copy ended.
  std::atomic_thread_fence(std::memory_order_acquire);
  node_.throw_if_failed();
  const PointToPoint& call = *item.call;
  if (item.bytes != 0 && device::is_device_address(call.address))
    node_.arena().copy_if_moved(call.address, item.at, item.bytes);
  item.mailbox->receipt(call.number).taken.store(call.number + 1, std::memory_order_release);
  item.state = State::done;
  ring_later(call.peer);
}

void MessageSteps::load_from_host(const PointToPoint& call, Message& message) {
  if (call.bytes() <= Message::kPayloadBytes) {
    const device::DeviceAddress bounce = staging_ + kShortMessagesOffset;
    device::copy_to_device(node_.arena(), bounce, host_source(call, 0), call.bytes());
    load(node_.arena(), bounce, call.bytes(), message.payload);
    return;
  }
  message.content = Message::kStreamed;
  MessageStream& stream = message.stream();
  stream.wanted.store(0, std::memory_order_relaxed);
  stream.filled.store(0, std::memory_order_relaxed);
  stream.drained.store(0, std::memory_order_relaxed);
}

// Returns whether the next piece of an offered send can go to the staging buffer.
bool MessageSteps::can_fill(const MessageItem& item) const {
  // Checks local state first: after the message has been taken, its entry may hold another message.
  if (item.bytes <= Message::kPayloadBytes || item.moved == item.bytes ||
      device::is_device_address(item.call->address))
    return false;
  if (filling_ != nullptr && filling_ != &item) return false;
  const MessageStream& stream = item.message->stream();
  return stream.wanted.load(std::memory_order_seq_cst) != 0 &&
         item.moved - stream.drained.load(std::memory_order_seq_cst) <= kStagingHalfBytes;
}

void MessageSteps::fill(MessageItem& item) {
  const PointToPoint& call = *item.call;
  Message& message = *item.message;
  if (item.moved == 0) {
    filling_ = &item;
    const device::Placement place = node_.arena().locate(staging_);
    message.offset = place.file_offset;
    message.serial = place.serial;
  }
  const std::uint64_t piece = std::min(kStagingHalfBytes, item.bytes - item.moved);
  const device::DeviceAddress half = staging_ + staging_half(item.moved);
  device::populate_for_copies(node_.arena(), half, piece);
  device::copy_to_device(node_.arena(), half, host_source(call, item.moved), piece);
  item.moved += piece;
  message.stream().filled.store(item.moved, std::memory_order_seq_cst);
  node_.record(call.peer).mail.ring();
}

void MessageSteps::begin_draining(MessageItem& item) {
  prepare_destination(item);
  item.state = State::draining;
  item.message->stream().wanted.store(1, std::memory_order_seq_cst);
  node_.record(item.call->peer).mail.ring();
}

// Copies the pieces that the sender has put into its staging buffer.
void MessageSteps::drain(MessageItem& item) {
  MessageStream& stream = item.message->stream();
  device::ArenaView& theirs = node_.memory(item.call->peer);
  while (item.moved < stream.filled.load(std::memory_order_seq_cst)) {
    const std::uint64_t bytes = std::min(kStagingHalfBytes, item.bytes - item.moved);
    const std::uint64_t from = item.message->offset + staging_half(item.moved);
    if (!theirs.populated(from, bytes)) theirs.populate(from, bytes, false);
    copier_.copy_piece(item, {item.moved, bytes, from, device::Content::data});
    item.moved += bytes;
    stream.drained.store(item.moved, std::memory_order_seq_cst);
    node_.record(item.call->peer).mail.ring();
  }
  if (item.moved == item.bytes) finish(item);
}

}  // namespace hccl::node
