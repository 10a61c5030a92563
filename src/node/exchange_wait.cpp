// SPDX-License-Identifier: Apache-2.0
// Publishes the call in which this rank waits, and checks what the peers are waiting for.
#include "node/exchange_wait.h"

#include "base/text.h"
#include "node/call_match.h"
#include "node/mailboxes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace hccl::node {
namespace {

// An item that stays blocked this long counts as a fault. Until then, another thread of either
// rank's program may make the missing call.
constexpr std::chrono::seconds kCertainty{1};

// Returns the number of the stream's next collective.
std::uint32_t next_collective(const NodeSegment& node, const StreamPlace& place) {
  return place.lane != nullptr ? place.lane->number() : node.control().header().first_number;
}

}  // namespace

ExchangeWait::~ExchangeWait() {
  if (timer_.started()) node_.own_record().in_exchange.store(0, std::memory_order_relaxed);
}

void ExchangeWait::sleep() {
  check_limits();
  node_.own_record().mail.sleep(timer_.time_to_check(), [this] {
    return node_.fault().raised() ||
           std::ranges::any_of(pending_.current(), [this](const MessageItem& item) {
             return item.state != MessageItem::State::done && steps_.ready(item);
           });
  });
}

void ExchangeWait::check_limits() {
  timer_.start();
  const PointToPoint& first =
      *std::ranges::find_if(pending_.current(), [](const MessageItem& item) {
         return item.state != MessageItem::State::done;
       })->call;
  node_.own_record().in_exchange.store(pack_call(first), std::memory_order_relaxed);
  for (const MessageItem& item : pending_.current()) check_departed(item);
  check_collectives();
  timer_.check([&] { return describe(first); }, [this] { return delay_text(); });
}

void ExchangeWait::check_departed(const MessageItem& item) const {
  if (item.state == MessageItem::State::done) return;
  // Checks for departure before readiness: a peer may have done its part just before it departed.
  if (!node_.has_departed(item.call->peer) || steps_.ready(item)) return;
  node_.fault().raise(hcclSystemError,
                      text(describe(*item.call), ": ", node_.rank_text(item.call->peer),
                           " has destroyed the communicator; it must make the matching call "
                           "first"));
}

void ExchangeWait::check_collectives() {
  const MessageItem* const blocked = find_blocked_by_collective();
  if (blocked != suspect_) {
    suspect_ = blocked;
    certain_ = Deadline::after(kCertainty);
  }
  if (suspect_ == nullptr || !certain_.expired()) return;
  node_.fault().raise(
      hcclInvalidUsage,
      text("rank ", node_.rank(), ' ', describe(*suspect_->call), " but ",
           posted_calls_text(node_.control(), place_.ordinal, next_collective(node_, place_)),
           "; every rank must make the same calls in the same order"));
}

// Returns an item that cannot complete because its peer waits in a collective, or null if there is
// none. Three conditions hold for the item: the peer has posted the next collective of this
// stream's lane, which this rank has not called; the programs of both ranks are blocked; and the
// peer has not queued the matching call on another stream.
const MessageItem* ExchangeWait::find_blocked_by_collective() const {
  if (!ahead_.host_is_waiting())
    return nullptr;  // this rank's program may still call the collective
  const std::uint32_t lane = place_.ordinal + 1;
  for (const MessageItem& item : pending_.current()) {
    const int peer = item.call->peer;
    if (!waits_for(item) ||
        node_.record(peer).host_is_waiting.load(std::memory_order_relaxed) != lane)
      continue;
    QueuedCalls& queued = item.sends() ? item.mailbox->receives : item.mailbox->sends;
    const bool is_queued_elsewhere =
        queued.count.load(std::memory_order_acquire) > item.call->number &&
        queued.entry(item.call->number).load(std::memory_order_relaxed) !=
            queued_on(item.call->number, lane);
    if (is_queued_elsewhere) continue;
    if (find_slot(node_.control(), place_.ordinal, next_collective(node_, place_), peer) != nullptr)
      return &item;
  }
  return nullptr;
}

std::string ExchangeWait::delay_text() const {
  std::string list;
  std::vector<int> listed;
  for (const MessageItem& item : pending_.current()) {
    const int peer = item.call->peer;
    if (!waits_for(item) || std::ranges::find(listed, peer) != listed.end()) continue;
    listed.push_back(peer);
    const std::uint64_t exchange = node_.record(peer).in_exchange.load(std::memory_order_relaxed);
    const std::uint32_t lane = node_.record(peer).in_operation.load(std::memory_order_relaxed);
    list += text(list.empty() ? "" : "; ", node_.rank_text(peer));
    if (node_.is_stopped(peer)) {
      list += " is stopped (SIGSTOP or a debugger)";
    } else if (lane != 0) {
      list += text(" is in a collective on its stream ", lane - 1);
    } else if (exchange != 0) {
      list += text(" is in ", describe(unpack_call(exchange)));
    } else {
      list += " has not made the matching call";
    }
  }
  return list.empty() ? "all peers have made their calls" : list;
}

}  // namespace hccl::node
