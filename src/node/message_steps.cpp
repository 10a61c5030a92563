// SPDX-License-Identifier: Apache-2.0
// A send is complete once the receiver has taken the message. By then, the receiver has checked
// that the two calls match and no longer needs the sender's buffer, so the sender's program may
// reuse the buffer.
#include "node/message_steps.h"

#include "base/text.h"
#include "device/host_memory.h"
#include "node/rank_memory.h"
#include "node/staging_layout.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace hccl::node {
namespace {

using State = MessageItem::State;

// Longer messages than this never go through the message ring, which should hold several.
constexpr std::uint64_t kLongestInRing = kMessageRingBytes / 8;
// Only shorter messages than this prefetch the memory of later messages.
constexpr std::uint64_t kPrefetchLimit = 8 << 10;
// The sender fills one piece while the receiver copies another.
constexpr std::uint64_t kPieceBytes = 128 << 10;
static_assert(kMessagePiecesBytes % kPieceBytes == 0);

// Returns the offset, relative to the first piece, of the piece that holds byte `position`.
std::uint64_t piece_offset(std::uint64_t position) { return position % kMessagePiecesBytes; }

// Returns the minimum size of a message that its receiver reads directly if it can. Two copies of a
// shorter message in user space, to the message ring and out of it, take less time. A send that
// goes through the ring need not wait for its receiver, which saves context switches.
std::uint64_t least_read_bytes(NodeSegment& node) {
  if (!node.cross_memory().prefers_staging()) return 8 << 10;
  return node.cores().exclusive ? kLongestInRing + 1 : 32 << 10;
}

}  // namespace

MessageItem MessageSteps::make_item(const PointToPoint& call) const {
  Mailbox& mailbox = mailboxes_.of(call);
  return {&call, &mailbox, &mailbox.message(call.number), call.bytes()};
}

bool MessageSteps::matches(const MessageItem& item) {
  return item.message->count == item.call->count && item.message->type == item.call->type;
}

bool MessageSteps::can_begin_early(MessageItem& item) const {
  if (item.bytes == 0) return true;
  if (item.is_on_host()) {
    // If host views are not recognised, the address may lie in a view of a pending message's device
    // memory.
    return node_.arena().recognises_views() &&
           device::has_host_access(
               item.call->address, item.bytes,
               item.sends() ? device::HostAccess::read : device::HostAccess::write);
  }
  return node_.arena().view()->populated(copier_.locate(item).file_offset, item.bytes);
}

bool MessageSteps::ready(const MessageItem& item) const {
  const std::uint64_t number = item.call->number;
  // Sequentially consistent, because a thread repeats this check after it has registered as a
  // sleeper.
  if (item.state == State::draining)
    return item.message->staged().filled.load(std::memory_order_seq_cst) > item.moved;
  if (!item.sends()) return item.message->offered.load(std::memory_order_seq_cst) == number + 1;
  const std::uint64_t taken = item.mailbox->receipt(number).taken.load(std::memory_order_seq_cst);
  if (item.state == State::offered)  // a later message in this entry may have been taken too
    return taken > number || can_fill(item);
  return number < Mailbox::kMessages || taken == number + 1 - Mailbox::kMessages;
}

void MessageSteps::advance(MessageItem& item) {
  if (item.sends()) {
    if (item.state == State::begun) return offer(item);
    if (can_fill(item)) return fill(item);
    complete_send(item);
  } else if (item.state == State::draining) {
    drain(item);
  } else {
    if (!matches(item)) throw_mismatch(item);
    if (!take(item)) begin_draining(item);
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
  if (item.bytes <= Message::kPayloadBytes) {
    if (item.bytes != 0) load(node_.arena(), call.address, item.bytes, message.payload);
  } else if (item.is_on_host()) {
    stage(item);
  } else {
    const device::Placement& from = copier_.locate(item);
    message.content =
        static_cast<std::uint8_t>(resolve_content(node_.arena(), from.file_offset, item.bytes));
    message.offset = from.file_offset;
    message.serial = from.serial;
  }
  // Once the message is offered, the receiver may take it, and another stream of this process may
  // then write its next message to the entry.
  const std::uint64_t offset = message.offset;
  message.offered.store(call.number + 1, std::memory_order_release);
  item.state = State::offered;
  ring_later(call.peer);
  if (item.in_ring) prefetch_later_message(item, offset);
}

// Prefetches the memory to which a later message will be written when it is offered: its entry in
// the mailbox and its part of the message ring. The stores then seldom wait for cache lines that
// the receiver has read. `offset` is the position of this message's data in the memory file.
// Assumes that all messages until then are as long as `item`. Does nothing for messages of
// kPrefetchLimit bytes or more, or if the next message may not follow this one in the ring. If the
// ring wraps around before the later message, prefetches only the entry.
void MessageSteps::prefetch_later_message(const MessageItem& item, std::uint64_t offset) const {
  constexpr std::uint64_t kDistance = 4;  // in messages
  if (item.bytes >= kPrefetchLimit || !ring_.advances()) return;
  const Message& entry = item.mailbox->message(item.call->number + kDistance);
  reduce::prefetch_for_stores(reinterpret_cast<const std::byte*>(&entry),
                              offsetof(Message, payload) + sizeof(StagedMessage));
  const std::uint64_t distance = kDistance * StagingRing::size_of(item.bytes);
  if (*item.in_ring + distance + item.bytes > kMessageRingBytes) return;
  reduce::prefetch_for_stores(node_.memory(node_.rank()).at(offset + distance), item.bytes);
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

// Makes the memory of both ranks accessible for copying an offered message.
void MessageSteps::prepare(MessageItem& item) {
  // As in offer(): the previous message of this entry may have been taken on another stream.
  static_cast<void>(item.mailbox->receipt(item.call->number).taken.load(std::memory_order_acquire));
  copier_.prepare_destination(item);
  if (item.bytes <= Message::kPayloadBytes) return;
  Message& message = *item.message;
  device::ArenaView& theirs = node_.memory(item.call->peer);
  if (message.content == Message::kStaged || message.content == Message::kInPieces) {
    theirs.follow(message.staged().staging, kStagingBytes, message.serial);
    // can_read() publishes its result, so that the sender need not stage later long messages.
    static_cast<void>(node_.cross_memory().can_read(item.call->peer));
  } else {
    theirs.follow(message.offset, item.bytes, message.serial);
  }
}

bool MessageSteps::take(MessageItem& item) {
  prepare(item);
  const bool takes_long = item.bytes > MessageCopier::kLongCopy;
  if (takes_long) ring_peers();
  if (!copy_whole(item)) return false;
  finish(item);
  if (takes_long) ring_peers();
  return true;
}

// Copies a message. Returns false if it has to come in pieces.
bool MessageSteps::copy_whole(MessageItem& item) {
  Message& message = *item.message;
  if (item.bytes == 0) return true;
  if (item.bytes <= Message::kPayloadBytes) {
    copier_.copy_short(item);
  } else if (message.content == Message::kInPieces) {
    return copier_.copy_from_process(item);
  } else {
    const auto content = message.content == Message::kStaged
                             ? device::Content::data
                             : static_cast<device::Content>(message.content);
    copier_.copy_piece(item, {0, item.bytes, message.offset, content});
  }
  return true;
}

void MessageSteps::finish(MessageItem& item) {
  // The sender's program may reuse its buffer after the communicator has failed, so the copy is
  // valid only if no fault was raised before the copy ended.
  std::atomic_thread_fence(std::memory_order_acquire);
  node_.throw_if_failed();
  const PointToPoint& call = *item.call;
  if (item.bytes != 0 && !item.is_on_host())
    node_.arena().copy_if_moved(call.address, item.at, item.bytes);
  item.mailbox->receipt(call.number).taken.store(call.number + 1, std::memory_order_release);
  item.state = State::done;
  ring_later(call.peer);
}

void MessageSteps::complete_send(MessageItem& item) {
  if (filling_ == &item) filling_ = nullptr;
  if (item.in_ring) ring_.free(*item.in_ring);
  item.state = State::done;
}

// Fills in the StagedMessage of a message from host memory. Copies the message to the message ring
// if it has at most kLongestInRing bytes and the ring has room, unless it has at least
// least_read_bytes() bytes and the receiver can copy it directly from this process.
void MessageSteps::stage(MessageItem& item) {
  device::require_host_access(item.call->address, item.bytes, device::HostAccess::read,
                              "send buffer");
  Message& message = *item.message;
  StagedMessage& staged = message.staged();
  const device::Placement place = node_.arena().locate(staging_);
  staged.staging = place.file_offset;
  staged.address = item.call->address;
  message.serial = place.serial;
  const bool is_read =
      node_.cross_memory().is_readable_by(item.call->peer) && item.bytes >= least_read_bytes(node_);
  if (!is_read && item.bytes <= kLongestInRing) item.in_ring = ring_.reserve(item.bytes);
  if (item.in_ring) {
    message.content = Message::kStaged;
    message.offset = message_ring_offset(staged.staging, node_.rank()) + *item.in_ring;
    std::memcpy(mapped_memory(node_, node_.rank(), message.offset, item.bytes), item.host_memory(),
                item.bytes);
    return;
  }
  message.content = Message::kInPieces;
  message.offset = message_pieces_offset(staged.staging, node_.rank());
  staged.filled.store(0, std::memory_order_relaxed);
  staged.drained.store(0, std::memory_order_relaxed);
}

// Returns whether the next piece of an offered send can go to the staging buffer. Reads the
// message's entry only if the receiver has requested pieces, and has therefore not yet taken the
// message. Once a message has been taken, its entry may hold another message.
bool MessageSteps::can_fill(const MessageItem& item) const {
  if (item.bytes <= Message::kPayloadBytes || item.moved == item.bytes || !item.is_on_host() ||
      item.in_ring)
    return false;
  if (filling_ != nullptr && filling_ != &item) return false;
  const std::uint64_t number = item.call->number;
  if (item.mailbox->receipt(number).wanted.load(std::memory_order_seq_cst) != number + 1)
    return false;
  const std::uint64_t drained = item.message->staged().drained.load(std::memory_order_seq_cst);
  return item.moved + kPieceBytes - drained <= kMessagePiecesBytes;
}

void MessageSteps::fill(MessageItem& item) {
  Message& message = *item.message;
  if (item.moved == 0) {
    filling_ = &item;
    device::require_host_access(item.call->address, item.bytes, device::HostAccess::read,
                                "send buffer");
  }
  const std::uint64_t bytes = std::min(kPieceBytes, item.bytes - item.moved);
  std::byte* const piece =
      mapped_memory(node_, node_.rank(), message.offset + piece_offset(item.moved), bytes);
  std::memcpy(piece, item.host_memory() + item.moved, bytes);
  item.moved += bytes;
  message.staged().filled.store(item.moved, std::memory_order_seq_cst);
  node_.record(item.call->peer).mail.ring();
}

void MessageSteps::begin_draining(MessageItem& item) {
  item.state = State::draining;
  const std::uint64_t number = item.call->number;
  item.mailbox->receipt(number).wanted.store(number + 1, std::memory_order_seq_cst);
  node_.record(item.call->peer).mail.ring();
}

// Copies the pieces that the sender has filled.
void MessageSteps::drain(MessageItem& item) {
  StagedMessage& staged = item.message->staged();
  while (item.moved < staged.filled.load(std::memory_order_seq_cst)) {
    const std::uint64_t bytes = std::min(kPieceBytes, item.bytes - item.moved);
    const std::uint64_t from = item.message->offset + piece_offset(item.moved);
    copier_.copy_piece(item, {item.moved, bytes, from, device::Content::data});
    item.moved += bytes;
    staged.drained.store(item.moved, std::memory_order_seq_cst);
    node_.record(item.call->peer).mail.ring();
  }
  if (item.moved == item.bytes) finish(item);
}

}  // namespace hccl::node
