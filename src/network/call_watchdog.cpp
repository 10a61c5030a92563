// SPDX-License-Identifier: Apache-2.0
#include "network/call_watchdog.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "network/network_messages.h"

#include <algorithm>

namespace hccl::network {
namespace {

constexpr std::chrono::milliseconds kVerdictPatience{500};
constexpr std::chrono::milliseconds kPeersPause{20};
// The maximum time from a query of all ranks to the server's verdict.
constexpr std::chrono::seconds kJudgement{1};
constexpr std::chrono::milliseconds kSecondJudgement{2500};
// The maximum time that data from a departed rank may still be in flight.
constexpr std::chrono::seconds kLastData{1};

[[noreturn]] void throw_departed(const NetworkBackend& network, const std::string& doing,
                                 int gone) {
  throw Error(hcclSystemError,
              text(doing, ": ", network.rank_text(gone),
                   " has destroyed the communicator; every rank must make the same calls before it "
                   "destroys the communicator"));
}

}  // namespace

CallWatchdog::CallWatchdog(NetworkBackend& network, WatchedCall call)
    : network_(network), call_(std::move(call)), answered_(network.stall_reports().asked()) {
  network_.stall_reports().enter();
}

CallWatchdog::~CallWatchdog() {
  StallReports& stall_reports = network_.stall_reports();
  stall_reports.leave();
  if (stall_reports.asked() != answered_) stall_reports.answer({});
}

void CallWatchdog::on_attempt() {
  network_.throw_if_failed();
  if (network_.stall_reports().asked() != answered_) answer_inquiry();
}

void CallWatchdog::on_idle(bool moved) {
  if (moved) begin_timeout();
  if (network_.stall_reports().anybody_departed()) check_departed();
  check_timeout();
}

void CallWatchdog::TimeLimit::begin(Deadline::Duration limit) {
  ask = Deadline::after(limit - std::min<Deadline::Duration>(kJudgement, limit / 2));
  end = Deadline::after(limit);
}

void CallWatchdog::begin_timeout() {
  begin_ = std::chrono::steady_clock::now();
  limit_ = network_.wait_limit().get();
  timeout_.begin(limit_.time);
  report_.begin(network_.config().hang_report);
  early_ask_ = Deadline::after(kJudgement);
  second_ask_ = Deadline::after(kSecondJudgement);
  departed_ = Deadline::never();
}

void CallWatchdog::check_timeout() {
  for (Deadline* const ask : {&early_ask_, &second_ask_, &timeout_.ask, &report_.ask}) {
    if (!ask->expired()) continue;
    *ask = Deadline::never();
    network_.stall_reports().ask(waiting());
  }
  if (timeout_.end.expired()) time_out();
  if (report_.end.expired()) report_hang();
}

bootstrap::Waiting CallWatchdog::waiting() const {
  bootstrap::Waiting waiting{"", call_.text(), std::string(call_.position.algorithm),
                             call_.awaited()};
  if (call_.is_collective) waiting.position = call_.position.text();
  // Reports no blocked collective while messages are queued on other streams, because these
  // messages may still complete calls of other ranks.
  if (call_.ahead != nullptr && call_.ahead->host_is_waiting() &&
      !network_.messages().are_queued_elsewhere(call_.stream))
    waiting.blocks = call_.position.text();
  std::ranges::sort(waiting.awaited);
  const auto end = std::unique(waiting.awaited.begin(), waiting.awaited.end());
  waiting.awaited.erase(end, waiting.awaited.end());
  return waiting;
}

void CallWatchdog::answer_inquiry() {
  answered_ = network_.stall_reports().asked();
  network_.stall_reports().answer(waiting());
}

void CallWatchdog::check_departed() {
  const int gone = network_.stall_reports().departed_of(waiting().awaited);
  if (gone < 0) {
    departed_ = Deadline::never();
  } else if (departed_.is_never()) {
    departed_ = Deadline::after(kLastData);
  } else if (departed_.expired()) {
    throw_departed(network_, waiting().doing(), gone);
  }
}

void CallWatchdog::throw_mismatch(const CallMismatch& found, transport::WaitSet& wait_set) {
  const Deadline verdict = Deadline::after(kJudgement);
  const bool asked = network_.stall_reports().ask(waiting());
  while (asked && !verdict.expired()) {
    on_attempt();
    static_cast<void>(wait_set.wait({}, verdict.within(kPeersPause)));
  }
  throw CallMismatch(found);
}

void CallWatchdog::time_out() const {
  const std::string ranks_and_cause = network_.stall_reports().root_cause(awaited_text(), begin_);
  throw Error(hcclSystemError,
              text(waiting().doing(), ": waited ", seconds(limit_.time), " s for ", ranks_and_cause,
                   "; ", limit_.remedy(), " if such a wait is expected"));
}

void CallWatchdog::report_hang() {
  report_.end = Deadline::never();
  if (!network_.claim_hang_report()) return;
  const std::string ranks_and_cause = network_.stall_reports().root_cause(awaited_text(), begin_);
  log_line(LogLevel::error, "hang",
           text("rank ", network_.rank(), " has waited ", seconds(network_.config().hang_report),
                " s in ", waiting().doing(), " for ", ranks_and_cause));
}

std::string CallWatchdog::awaited_text() const {
  std::string list;
  for (const int rank : waiting().awaited)
    list += text(list.empty() ? "" : ", ", network_.rank_text(rank));
  return list.empty() ? "no rank" : list;
}

void throw_lost(NetworkBackend& network, transport::WaitSet& wait_set, const std::string& doing,
                const transport::PeerLost& lost) {
  const auto has_left = [&] { return network.stall_reports().departed_of({lost.peer()}) >= 0; };
  // Checks every kPeersPause, because a rank of this node may raise a fault without ringing
  // `wait_set`.
  const Deadline wait_budget = Deadline::after(kVerdictPatience);
  while (!network.failed() && !has_left() && !wait_budget.expired())
    static_cast<void>(wait_set.wait({}, wait_budget.within(kPeersPause)));
  network.throw_if_failed();
  if (has_left()) throw_departed(network, doing, lost.peer());
  throw Error(hcclSystemError, text(doing, ": ", network.rank_text(lost.peer()),
                                    " has exited or cannot be reached: ", lost.what()));
}

}  // namespace hccl::network
