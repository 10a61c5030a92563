// SPDX-License-Identifier: Apache-2.0
// WaitBudget of sends and receives: deadlines, the hang report, peers that have gone, and peers
// that wait in a collective for the rank that waits for them.
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "node/exchange.h"

#include <algorithm>

namespace hccl::node {
namespace {

// Another thread of a program that waits may still make the call.
constexpr std::chrono::seconds kCertainty{1};
constexpr std::uint64_t kMostPackedCount = 0xFFFFFFFF;

}  // namespace

std::uint64_t pack(const PointToPoint& call) {
  return std::min(call.count, kMostPackedCount) << 32 |
         static_cast<std::uint64_t>(static_cast<std::uint16_t>(call.peer)) << 16 |
         std::uint64_t{call.type} << 8 | static_cast<std::uint64_t>(call.direction);
}

PointToPoint unpack(std::uint64_t packed) {
  PointToPoint call;
  call.direction = static_cast<Direction>(packed & 0xFF);
  call.type = static_cast<std::uint8_t>(packed >> 8);
  call.peer = static_cast<std::uint16_t>(packed >> 16);
  call.count = packed >> 32;
  return call;
}

void Engine::Exchange::note_waiting() {
  if (!waiting_) {
    waiting_ = true;
    limit_ = engine_.wait_limit_.get();
    deadline_ = Deadline::after(limit_.time);
    report_ = Deadline::after(engine_.hang_report_);
  }
  const auto first = std::ranges::find_if(
      pending_.current(), [](const Item& item) { return item.state != State::done; });
  record(engine_.rank_).in_exchange.store(pack(*first->call), std::memory_order_relaxed);
}

void Engine::Exchange::check_presence(const Item& item) const {
  // First whether it has gone: it may have done its part and gone just now.
  const bool departed = engine_.segment_.has_departed(item.call->peer);
  if (!departed || ready(item)) return;
  engine_.fault_.raise(hcclSystemError,
                       text(describe(*item.call), ": ", engine_.segment_.rank_text(item.call->peer),
                            " has destroyed the communicator; it must make the matching call"));
}

// An item whose peer waits, on the same stream as far as this rank can tell, in a collective that
// this rank has not called; the programs of both wait too, and the other side is not queued on
// another stream.
const Engine::Exchange::Item* Engine::Exchange::blocked_by_collective() const {
  if (!ahead_.host_is_waiting())
    return nullptr;  // this rank's program may still call the collective
  for (const Item& item : pending_.current()) {
    if (item.state == State::done || ready(item)) continue;
    const RankRecord& peer = record(item.call->peer);
    const std::uint32_t lane = place_.ordinal + 1;
    if (peer.host_is_waiting.load(std::memory_order_relaxed) != lane) continue;
    QueuedCalls& queued = item.sends() ? item.mailbox->receives : item.mailbox->sends;
    const bool elsewhere = queued.count.load(std::memory_order_acquire) > item.call->number &&
                           queued.place(item.call->number).load(std::memory_order_relaxed) !=
                               queued_on(item.call->number, lane);
    if (elsewhere) continue;
    if (engine_.find_slot(place_, item.call->peer) != nullptr) return &item;
  }
  return nullptr;
}

std::string Engine::Exchange::delay_text() const {
  std::string described;
  std::vector<int> told;
  for (const Item& item : pending_.current()) {
    const int peer = item.call->peer;
    if (item.state == State::done || ready(item) || std::ranges::find(told, peer) != told.end())
      continue;
    told.push_back(peer);
    const std::uint64_t exchange = record(peer).in_exchange.load(std::memory_order_relaxed);
    const std::uint32_t lane = record(peer).in_operation.load(std::memory_order_relaxed);
    described += text(described.empty() ? "" : "; ", engine_.segment_.rank_text(peer));
    if (engine_.segment_.is_stopped(peer)) {
      described += " is stopped (SIGSTOP or a debugger)";
    } else if (lane != 0) {
      described += text(" is in a collective of its stream ", lane - 1);
    } else if (exchange != 0) {
      described += text(" is in ", describe(unpack(exchange)));
    } else {
      described += " has not made the matching call";
    }
  }
  return described.empty() ? "all peers have made their calls" : described;
}

void Engine::Exchange::check_time_limits() {
  note_waiting();
  for (const Item& item : pending_.current()) {
    if (item.state != State::done) check_presence(item);
  }
  const PointToPoint waits_in = unpack(record(engine_.rank_).in_exchange.load());
  const Item* const blocked = blocked_by_collective();
  if (blocked != suspect_) {
    suspect_ = blocked;
    certain_ = Deadline::after(kCertainty);
  }
  if (suspect_ != nullptr && certain_.expired()) {
    engine_.fault_.raise(hcclInvalidUsage,
                         text("rank ", engine_.rank_, ' ', describe(*suspect_->call), " but ",
                              engine_.calls_text(place_),
                              "; every rank must make the same calls in the same order"));
  } else if (deadline_.expired()) {
    engine_.fault_.raise(
        hcclSystemError,
        text(describe(waits_in), ": rank ", engine_.rank_, " waited ", seconds(limit_.time),
             " s: ", delay_text(), "; ", limit_.remedy(), " if such a wait is expected"));
  } else if (report_.expired() && !engine_.hang_reported_.exchange(true)) {
    log_line(LogLevel::error, "hang",
             text("rank ", engine_.rank_, " has waited ", seconds(engine_.hang_report_), " s in ",
                  describe(waits_in), ": ", delay_text()));
  }
}

}  // namespace hccl::node
