// SPDX-License-Identifier: Apache-2.0
// Sends and receives: the sender offers a message, the receiver copies it, short ones from the
// mailbox, others straight from the sender's memory. All of a group progress side by side, each as
// soon as its peer has done its part, so that their order does not matter. A send is complete when
// its message has been taken: then both sides know of a mismatch, and the buffer is the program's
// again.
#include "node/exchange.h"

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace hccl::node {

std::string describe(const PointToPoint& call) {
  const bool sends = call.direction == Direction::send;
  return text(sends ? "send(" : "recv(", call.count, ", ",
              reduce::type_name(static_cast<hcclDataType_t>(call.type)),
              sends ? ") to rank " : ") from rank ", call.peer);
}

void Engine::number(PointToPoint& call, std::uint32_t lane) {
  const auto peer = static_cast<std::size_t>(call.peer);
  if (call.direction == Direction::send) {
    call.number = next_send_[peer]++;
    Mailbox& mailbox = control_.mailbox(rank_, call.peer);
    mailbox.message(call.number)
        .sender_place.store(queued_on(call.number, lane), std::memory_order_relaxed);
    mailbox.sends.store(call.number + 1, std::memory_order_release);
  } else {
    call.number = next_receive_[peer]++;
    Mailbox& mailbox = control_.mailbox(call.peer, rank_);
    mailbox.message(call.number)
        .receiver_place.store(queued_on(call.number, lane), std::memory_order_relaxed);
    mailbox.receives.store(call.number + 1, std::memory_order_release);
  }
}

void Engine::exchange(const StreamPlace& place, std::span<const PointToPoint> calls,
                      GroupsAhead& ahead) {
  if (fault_.raised()) fault_.throw_error();
  Exchange(*this, place, calls, ahead).run();
}

Engine::Exchange::Exchange(Engine& engine, const StreamPlace& place,
                           std::span<const PointToPoint> calls, GroupsAhead& ahead)
    : engine_(engine), place_(place), ahead_(ahead), left_(calls.size()) {
  items_.reserve(calls.size());
  for (const PointToPoint& call : calls) {
    items_.push_back(item_of(call));
    if (items_.back().stage == Stage::done) --left_;
  }
}

// Where a call stands: it may have been begun ahead of its turn.
Engine::Exchange::Item Engine::Exchange::item_of(const PointToPoint& call) const {
  const bool sends = call.direction == Direction::send;
  Mailbox& mailbox = sends ? engine_.control_.mailbox(engine_.rank_, call.peer)
                           : engine_.control_.mailbox(call.peer, engine_.rank_);
  Message& message = mailbox.message(call.number);
  // Both only grow, and this rank alone writes the one that is looked at.
  const std::atomic<std::uint64_t>& own = sends ? message.offered : message.taken;
  const bool begun_ahead = own.load(std::memory_order_relaxed) > call.number;
  Stage stage = Stage::begun;
  if (begun_ahead) stage = sends ? Stage::offered : Stage::done;
  return {&call, &mailbox, &message, stage};
}

Engine::Exchange::~Exchange() {
  if (waiting_) record(engine_.rank_).in_exchange.store(0, std::memory_order_relaxed);
}

void Engine::Exchange::run() {
  Waiter waiter(engine_.ladder_);
  for (;;) {
    bool moved = false;
    for (Item& item : items_) {
      while (item.stage != Stage::done && ready(item)) {
        advance(item);
        moved = true;
      }
    }
    if (left_ == 0) return;
    if (engine_.fault_.raised()) engine_.fault_.throw_error();
    if (moved || advance_ahead()) {
      waiter = Waiter(engine_.ladder_);
    } else if (!waiter.poll_again()) {
      sleep();
    }
  }
}

// Whether an item's peer has done what comes before its next step.
bool Engine::Exchange::ready(const Item& item) {
  const std::uint64_t number = item.call->number;
  // Sequentially consistent, like offering and taking, and looking for sleepers after that.
  const std::uint64_t taken = item.message->taken.load(std::memory_order_seq_cst);
  if (item.call->direction == Direction::receive)
    return item.message->offered.load(std::memory_order_seq_cst) == number + 1;
  if (item.stage == Stage::offered) return taken > number;  // the next one here may be, too
  return number < Mailbox::kMessages || taken == number + 1 - Mailbox::kMessages;
}

void Engine::Exchange::advance(Item& item) {
  if (item.call->direction == Direction::send && item.stage == Stage::begun) {
    offer(item);
    item.stage = Stage::offered;
    return;
  }
  if (item.call->direction == Direction::receive) take(item);
  item.stage = Stage::done;
  --left_;
}

void Engine::Exchange::offer(const Item& item) {
  const PointToPoint& call = *item.call;
  Message& message = *item.message;
  message.type = call.type;
  message.count = call.count;
  if (call.bytes() <= Message::kPayloadBytes) {
    if (call.bytes() != 0) engine_.load(call.address, call.bytes(), message.payload);
  } else {
    const device::Placement from = engine_.arena_.place(call.address);
    message.content = static_cast<std::uint8_t>(engine_.settle(from.file_offset, call.bytes()));
    message.offset = from.file_offset;
    message.serial = from.serial;
  }
  message.offered.store(call.number + 1, std::memory_order_seq_cst);
  record(call.peer).mail.ring();
}

void Engine::Exchange::take(const Item& item) {
  const PointToPoint& call = *item.call;
  Message& message = *item.message;
  if (message.count != call.count || message.type != call.type) {
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
  if (call.bytes() != 0) copy(call, message);
  // The sender's buffer is its program's again once the communicator has failed: what was copied
  // before that is whole.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (engine_.fault_.raised()) engine_.fault_.throw_error();
  message.taken.store(call.number + 1, std::memory_order_seq_cst);
  record(call.peer).mail.ring();
}

void Engine::Exchange::copy(const PointToPoint& call, const Message& message) {
  const std::uint64_t bytes = call.bytes();
  device::ArenaView& mine = *engine_.arena_.view();
  const device::Placement to = engine_.arena_.place(call.address);
  if (!mine.populated(to.file_offset, bytes)) mine.populate(to.file_offset, bytes, true);
  if (bytes <= Message::kPayloadBytes) {
    std::memcpy(mine.at(to.file_offset), message.payload, bytes);
  } else {
    copy_from_peer(call, message, to.file_offset);
  }
  engine_.arena_.bring_after(call.address, to, bytes);
}

void Engine::Exchange::copy_from_peer(const PointToPoint& call, const Message& message,
                                      std::uint64_t to) {
  const std::uint64_t bytes = call.bytes();
  const auto content = static_cast<device::Content>(message.content);
  device::ArenaView& theirs = *engine_.peers_[static_cast<std::size_t>(call.peer)].memory;
  theirs.follow(message.offset, bytes, message.serial);
  const bool mapped = theirs.populated(message.offset, bytes);
  const bool streaming =
      2 * bytes * static_cast<std::uint64_t>(engine_.size_) > engine_.cache_bytes_ / 2 * 3;
  const auto policy = streaming ? reduce::StorePolicy::streaming : reduce::StorePolicy::cached;
  for (std::uint64_t done = 0; done < bytes; done += TilePlan::kLongestTile) {
    if (engine_.fault_.raised()) engine_.fault_.throw_error();
    const std::uint64_t piece = std::min(TilePlan::kLongestTile, bytes - done);
    std::byte* const destination = engine_.arena_.view()->at(to + done);
    const std::byte* const source =
        engine_.readable(call.peer, message.offset + done, piece, content, mapped);
    reduce::copy_tile(source, {&destination, 1}, piece, policy);
  }
}

void Engine::Exchange::sleep() {
  check_patience();
  constexpr std::chrono::milliseconds kLook{500};  // for ranks that do something else
  const auto limit = std::min<Deadline::Duration>(deadline_.remaining(kLook), kLook);
  record(engine_.rank_).mail.sleep(limit + std::chrono::milliseconds(1), [&] {
    return engine_.fault_.raised() || std::ranges::any_of(items_, [&](const Item& item) {
             return item.stage != Stage::done && ready(item);
           });
  });
}

}  // namespace hccl::node
