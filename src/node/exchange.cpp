// SPDX-License-Identifier: Apache-2.0
// Sends and receives: the sender offers a message, the receiver copies it, short ones from the
// mailbox, others straight from the sender's memory. All of a group progress side by side, each as
// soon as its peer has done its part, so that their order does not matter. A send is complete when
// its message has been taken: then both sides know of a mismatch, and the buffer is the program's
// again.
#include "node/exchange.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace hccl::node {
namespace {

constexpr std::uint64_t kLongCopy = 16 << 10;  // nobody's news waits for a copy of more bytes

}  // namespace

void Engine::number(PointToPoint& call, std::uint32_t lane) {
  const auto peer = static_cast<std::size_t>(call.peer);
  const bool sends = call.direction == Direction::send;
  call.number = sends ? next_send_[peer]++ : next_receive_[peer]++;
  QueuedCalls& queued = sends ? mailbox_to(call.peer).sends : mailbox_from(call.peer).receives;
  queued.place(call.number).store(queued_on(call.number, lane), std::memory_order_relaxed);
  queued.count.store(call.number + 1, std::memory_order_release);
}

std::shared_ptr<PendingMessages> Engine::make_pending_messages() {
  return std::make_shared<PendingMessages>();
}

bool Engine::exchange(const StreamPlace& place, std::span<const PointToPoint> calls,
                      GroupLookahead& ahead, device::DeviceAddress stage) {
  if (fault_.raised()) fault_.throw_error();
  return Exchange(*this, place, calls, ahead, stage).run();
}

Engine::Exchange::Exchange(Engine& engine, const StreamPlace& place,
                           std::span<const PointToPoint> calls, GroupLookahead& ahead,
                           device::DeviceAddress stage)
    : engine_(engine),
      place_(place),
      ahead_(ahead),
      stage_(stage),
      pending_(*place.pending),
      left_(calls.size()) {
  if (!pending_.open(calls.size())) {
    for (const PointToPoint& call : calls) pending_.push_back(item_of(call));
    return;
  }
  for (const Item& item : pending_.current()) {
    if (item.state == State::done) --left_;
  }
}

Engine::Exchange::Item Engine::Exchange::item_of(const PointToPoint& call) const {
  Mailbox& mailbox = call.direction == Direction::send ? engine_.mailbox_to(call.peer)
                                                       : engine_.mailbox_from(call.peer);
  return {&call, &mailbox, &mailbox.message(call.number), call.bytes()};
}

Engine::Exchange::~Exchange() {
  if (waiting_) record(engine_.rank_).in_exchange.store(0, std::memory_order_relaxed);
  if (failed_) pending_.clear();
}

bool Engine::Exchange::run() {
  Waiter waiter(engine_.segment_.ladder());
  for (;;) {
    bool moved = false;
    for (Item& item : pending_.current()) {
      while (item.state != State::done && ready(item)) {
        advance(item);
        moved = true;
      }
    }
    if (left_ != 0) tell_awaited(pending_.current());
    // Begin the groups behind before ringing the peers, so that each is rung once.
    if (left_ != 0) moved = advance_ahead() || moved;
    ring_told();
    if (left_ == 0) break;
    if (engine_.fault_.raised()) engine_.fault_.throw_error();
    if (moved) {
      waiter = Waiter(engine_.segment_.ladder());
    } else if (!waiter.poll_again(ahead_.wait_budget())) {
      if (may_return_early()) {
        failed_ = false;
        return false;
      }
      sleep();
    }
  }
  pending_.close();
  failed_ = false;
  return true;
}

// A peer may depend on the stage of a message that has been moved in part.
bool Engine::Exchange::may_return_early() const {
  return ahead_.wait_budget() != WaitBudget::unlimited &&
         std::ranges::none_of(pending_.current(), [](const Item& item) {
           return item.state == State::draining || item.moved != 0;
         });
}

// Only what is longer than a mailbox holds can be.
bool Engine::Exchange::is_streamed(const Item& item) {
  return item.message->content == Message::kStreamed && item.bytes > Message::kPayloadBytes;
}

// Returns whether an item's peer has done what comes before its next step.
bool Engine::Exchange::ready(const Item& item) const {
  const std::uint64_t number = item.call->number;
  // Sequentially consistent: a sleeper looks here after it has announced itself.
  if (item.state == State::draining)
    return item.message->stream().filled.load(std::memory_order_seq_cst) > item.moved;
  if (!item.sends()) return item.message->offered.load(std::memory_order_seq_cst) == number + 1;
  const std::uint64_t taken = item.mailbox->receipt(number).taken.load(std::memory_order_seq_cst);
  if (item.state == State::offered)  // the next one here may be taken, too
    return taken > number || can_fill(item);
  return number < Mailbox::kMessages || taken == number + 1 - Mailbox::kMessages;
}

void Engine::Exchange::advance(Item& item) {
  const bool sends = item.sends();
  if (sends && item.state == State::begun) {
    offer(item);
    item.state = State::offered;
    return;
  }
  if (sends && can_fill(item)) return fill(item);
  if (item.state == State::draining) {
    drain(item);
    if (item.moved < item.bytes) return;
    finish(item);
  } else if (!sends) {
    check_match(item);
    if (is_streamed(item)) return begin_draining(item);
    take(item);
  }
  if (fills_ == &item) fills_ = nullptr;
  item.state = State::done;
  --left_;
}

// The place found first holds until the allocations change; then the pages may be others.
const device::Placement& Engine::Exchange::locate(Item& item) const {
  if (!engine_.arena_.is_current(item.at)) item.at = engine_.arena_.place(item.call->address);
  return item.at;
}

void Engine::Exchange::offer(Item& item) {
  const PointToPoint& call = *item.call;
  Message& message = *item.message;
  // The last one here may have been another stream's: the order came by way of the peer, whom a
  // race detector does not see.
  static_cast<void>(message.offered.load(std::memory_order_acquire));
  message.type = call.type;
  message.count = call.count;
  message.content = static_cast<std::uint8_t>(device::Content::data);
  if (item.bytes != 0 && !device::is_device_address(call.address)) {
    load_from_host(call, message);
  } else if (item.bytes <= Message::kPayloadBytes) {
    if (item.bytes != 0) engine_.load(call.address, item.bytes, message.payload);
  } else {
    const device::Placement& from = locate(item);
    message.content =
        static_cast<std::uint8_t>(engine_.resolve_content(from.file_offset, item.bytes));
    message.offset = from.file_offset;
    message.serial = from.serial;
  }
  message.offered.store(call.number + 1, std::memory_order_release);
  tell(call.peer);
}

// One fence for all the news: what was stored comes before the look for sleepers.
void Engine::Exchange::ring_told() {
  if (news_ == 0) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (; news_ != 0; news_ &= news_ - 1) record(std::countr_zero(news_)).mail.ring();
}

void Engine::Exchange::check_match(const Item& item) {
  const PointToPoint& call = *item.call;
  const Message& message = *item.message;
  if (message.count == call.count && message.type == call.type) return;
  PointToPoint theirs = call;
  theirs.direction = Direction::send;
  theirs.peer = engine_.rank_;
  theirs.count = message.count;
  theirs.type = message.type;
  engine_.fault_.raise(
      hcclInvalidUsage,
      text("message ", call.number, ": rank ", call.peer, ' ', describe(theirs), " but rank ",
           engine_.rank_, ' ', describe(call), "; both must pass the same count and type"));
  engine_.fault_.throw_error();
}

// Finds the memory that a message goes to.
void Engine::Exchange::begin_taking(Item& item) {
  const PointToPoint& call = *item.call;
  // As in offer(): who took the last one here may have been another stream.
  static_cast<void>(item.mailbox->receipt(call.number).taken.load(std::memory_order_acquire));
  if (item.bytes == 0 || !device::is_device_address(call.address)) return;
  device::ArenaView& mine = *engine_.arena_.view();
  const std::uint64_t to = locate(item).file_offset;
  if (!mine.populated(to, item.bytes)) mine.populate(to, item.bytes, true);
}

void Engine::Exchange::take(Item& item) {
  begin_taking(item);
  const std::uint64_t bytes = item.bytes;
  const Message& message = *item.message;
  const bool takes_long = bytes > kLongCopy;
  if (takes_long) ring_told();
  if (bytes > Message::kPayloadBytes) {
    copy_piece(item, {0, bytes, message.offset, static_cast<device::Content>(message.content)});
  } else if (bytes != 0) {
    copy_short(item);
  }
  finish(item);
  if (takes_long) ring_told();
}

void Engine::Exchange::finish(const Item& item) {
  // The sender's buffer is its program's again once the communicator has failed: what was copied
  // before that is whole.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (engine_.fault_.raised()) engine_.fault_.throw_error();
  const PointToPoint& call = *item.call;
  if (item.bytes != 0 && device::is_device_address(call.address))
    engine_.arena_.bring_after(call.address, item.at, item.bytes);
  item.mailbox->receipt(call.number).taken.store(call.number + 1, std::memory_order_release);
  tell(call.peer);
}

void Engine::Exchange::copy_short(const Item& item) {
  if (!device::is_device_address(item.call->address)) return copy_short_to_host(item);
  std::byte* const destination = engine_.arena_.view()->at(item.at.file_offset);
  std::memcpy(destination, item.message->payload, item.bytes);
}

void Engine::Exchange::copy_piece(const Item& item, const Piece& piece) {
  if (!device::is_device_address(item.call->address)) return copy_to_host(item, piece);
  copy_to_device(item, piece);
}

void Engine::Exchange::copy_to_device(const Item& item, const Piece& piece) {
  const int peer = item.call->peer;
  device::ArenaView& theirs = engine_.segment_.memory(peer);
  theirs.follow(piece.offset, piece.bytes, item.message->serial);
  const bool mapped = theirs.populated(piece.offset, piece.bytes);
  const std::uint64_t to = item.at.file_offset + piece.position;
  // Most messages: no pages to bring in, nothing to look up or to end early.
  if (mapped && piece.bytes <= kLongCopy && piece.content == device::Content::data) {
    std::memcpy(engine_.arena_.view()->at(to), theirs.at(piece.offset), piece.bytes);
    return;
  }
  const bool streaming =
      2 * piece.bytes * static_cast<std::uint64_t>(engine_.size_) > engine_.cache_bytes_ / 2 * 3;
  const auto policy = streaming ? reduce::StorePolicy::streaming : reduce::StorePolicy::cached;
  for (std::uint64_t done = 0; done < piece.bytes; done += TilePlan::kLongestTile) {
    if (engine_.fault_.raised()) engine_.fault_.throw_error();
    const std::uint64_t bytes = std::min(TilePlan::kLongestTile, piece.bytes - done);
    std::byte* const destination = engine_.arena_.view()->at(to + done);
    const std::byte* const source =
        engine_.readable(peer, piece.offset + done, bytes, piece.content, mapped);
    reduce::copy_tile(source, {&destination, 1}, bytes, policy);
  }
}

void Engine::Exchange::sleep() {
  check_time_limits();
  constexpr std::chrono::milliseconds kLook{500};  // for ranks that do something else
  const auto limit = std::min<Deadline::Duration>(deadline_.remaining(kLook), kLook);
  record(engine_.rank_).mail.sleep(limit + std::chrono::milliseconds(1), [&] {
    return engine_.fault_.raised() ||
           std::ranges::any_of(pending_.current(), [&](const Item& item) {
             return item.state != State::done && ready(item);
           });
  });
}

}  // namespace hccl::node
