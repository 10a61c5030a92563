// SPDX-License-Identifier: Apache-2.0
#include "comm/fabric_watch.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "comm/fabric_messages.h"

#include <algorithm>

namespace hccl::comm {
namespace {

constexpr std::chrono::milliseconds kVerdictPatience{500};
constexpr std::chrono::milliseconds kMatesPause{20};
// The rank that judges asks all others first.
constexpr std::chrono::seconds kJudgement{1};
constexpr std::chrono::milliseconds kSecondJudgement{2500};
// Data that a rank sent before it left may still be on its way.
constexpr std::chrono::seconds kLastData{1};

[[noreturn]] void throw_departed(const Fabric& fabric, const std::string& doing, int gone) {
  throw Error(hcclSystemError,
              text(doing, ": ", fabric.rank_text(gone),
                   " has destroyed the communicator; every rank must make the same calls first"));
}

}  // namespace

FabricWatch::FabricWatch(Fabric& fabric, WatchedCall call)
    : fabric_(fabric), call_(std::move(call)), answered_(fabric.inquiries().asked()) {
  fabric_.inquiries().enter();
}

FabricWatch::~FabricWatch() {
  Inquiries& inquiries = fabric_.inquiries();
  inquiries.leave();
  if (inquiries.asked() != answered_) inquiries.answer({});
}

void FabricWatch::glance() {
  if (fabric_.fault().raised()) fabric_.fault().throw_error();
  if (fabric_.inquiries().asked() != answered_) answer_inquiry();
}

void FabricWatch::look(bool moved) {
  if (moved) begin_patience();
  if (fabric_.inquiries().anybody_departed()) check_departed();
  check_patience();
}

void FabricWatch::Patience::begin(Deadline::Duration limit) {
  ask = Deadline::after(limit - std::min<Deadline::Duration>(kJudgement, limit / 2));
  end = Deadline::after(limit);
}

void FabricWatch::begin_patience() {
  begin_ = std::chrono::steady_clock::now();
  limit_ = fabric_.wait_limit().get();
  patience_.begin(limit_.time);
  report_.begin(fabric_.options().hang_report);
  early_ask_ = Deadline::after(kJudgement);
  second_ask_ = Deadline::after(kSecondJudgement);
  departed_ = Deadline::never();
}

void FabricWatch::check_patience() {
  for (Deadline* const ask : {&early_ask_, &second_ask_, &patience_.ask, &report_.ask}) {
    if (!ask->expired()) continue;
    *ask = Deadline::never();
    fabric_.inquiries().ask(waiting());
  }
  if (patience_.end.expired()) time_out();
  if (report_.end.expired()) report_hang();
}

bootstrap::Waiting FabricWatch::waiting() const {
  bootstrap::Waiting waiting{"", call_.text(), std::string(call_.place.algorithm), call_.awaited()};
  if (call_.is_collective) waiting.place = call_.place.text();
  // Messages that are queued on other streams may still end what others wait for.
  if (call_.stream != nullptr && call_.stream->attended() &&
      !fabric_.messages().are_queued_elsewhere(call_.stream->stream_id()))
    waiting.blocks = call_.place.text();
  std::ranges::sort(waiting.awaited);
  const auto end = std::unique(waiting.awaited.begin(), waiting.awaited.end());
  waiting.awaited.erase(end, waiting.awaited.end());
  return waiting;
}

void FabricWatch::answer_inquiry() {
  answered_ = fabric_.inquiries().asked();
  fabric_.inquiries().answer(waiting());
}

void FabricWatch::check_departed() {
  const int gone = fabric_.inquiries().departed_of(waiting().awaited);
  if (gone < 0) {
    departed_ = Deadline::never();
  } else if (departed_.is_never()) {
    departed_ = Deadline::after(kLastData);
  } else if (departed_.expired()) {
    throw_departed(fabric_, waiting().doing(), gone);
  }
}

void FabricWatch::throw_mismatch(const executor::CallMismatch& found,
                                 transport::WaitSet& wait_set) {
  const Deadline verdict = Deadline::after(kJudgement);
  const bool asked = fabric_.inquiries().ask(waiting());
  while (asked && !verdict.expired()) {
    glance();
    static_cast<void>(wait_set.wait({}, Deadline::after(verdict.remaining(kMatesPause))));
  }
  throw executor::CallMismatch(found);
}

void FabricWatch::time_out() const {
  throw Error(hcclSystemError, text(waiting().doing(), ": waited ", seconds(limit_.time), " s for ",
                                    fabric_.inquiries().culprits(awaited_text(), begin_), "; ",
                                    limit_.remedy(), " if that is no fault"));
}

void FabricWatch::report_hang() {
  report_.end = Deadline::never();
  if (!fabric_.claim_hang_report()) return;
  log_line(LogLevel::error, "hang",
           text("rank ", fabric_.options().rank, " has waited ",
                seconds(fabric_.options().hang_report), " s in ", waiting().doing(), " for ",
                fabric_.inquiries().culprits(awaited_text(), begin_)));
}

std::string FabricWatch::awaited_text() const {
  std::string list;
  for (const int rank : waiting().awaited)
    list += text(list.empty() ? "" : ", ", fabric_.rank_text(rank));
  return list.empty() ? "nobody" : list;
}

void throw_lost(Fabric& fabric, transport::WaitSet& wait_set, const std::string& doing,
                const transport::PeerLost& lost) {
  const auto has_left = [&] { return fabric.inquiries().departed_of({lost.peer()}) >= 0; };
  // A mate of this node may raise it without ringing.
  const Deadline patience = Deadline::after(kVerdictPatience);
  while (!fabric.fault().raised() && !has_left() && !patience.expired())
    static_cast<void>(wait_set.wait({}, Deadline::after(patience.remaining(kMatesPause))));
  if (fabric.fault().raised()) fabric.fault().throw_error();
  if (has_left()) throw_departed(fabric, doing, lost.peer());
  throw Error(hcclSystemError,
              text(doing, ": ", fabric.rank_text(lost.peer()), " is gone or out of reach (",
                   lost.what(), "); look at its output, and at the network to it"));
}

}  // namespace hccl::comm
