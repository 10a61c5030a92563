// SPDX-License-Identifier: Apache-2.0
// WaitBudget: deadlines, the hang report, and peers that will never come.
#include "node/waiting.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "node/exchange.h"

#include <algorithm>
#include <chrono>

namespace hccl::node {

std::vector<int> Engine::missing_ranks(const Lane& lane) const {
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (!lane.arrived(rank)) missing.push_back(rank);
  }
  return missing;
}

std::string Engine::delay_text(const Operation& op) const {
  const Lane& lane = op.lane;
  const std::vector<int> missing = missing_ranks(lane);
  std::string described;
  const auto add = [&](int rank, const std::string& what) {
    described += text(described.empty() ? "" : "; ", segment_.rank_text(rank), what);
  };
  for (int rank = 0; rank < size_; ++rank) {
    const bool absent = std::find(missing.begin(), missing.end(), rank) != missing.end();
    const std::uint32_t elsewhere =
        segment_.record(rank).in_operation.load(std::memory_order_relaxed);
    const std::uint64_t exchange =
        segment_.record(rank).in_exchange.load(std::memory_order_relaxed);
    if (segment_.is_stopped(rank)) {
      add(rank, " is stopped (SIGSTOP or a debugger)");
    } else if (absent && exchange != 0) {
      add(rank, text(" is in ", describe(unpack(exchange))));
    } else if (absent && elsewhere == 0) {
      add(rank, " has not called it");
    } else if (absent && elsewhere - 1 != lane.ordinal()) {
      add(rank, text(" is in an operation of its stream ", elsewhere - 1, " of this communicator"));
    } else if (absent) {
      add(rank, " is about to arrive");
    } else if (missing.empty() && lane.slot(rank).slice.load() < op.slice_number) {
      add(rank, " is copying its host memory and gets no processor time");
    } else if (missing.empty() && lane.inside(rank).tile.load(std::memory_order_relaxed) != 0) {
      add(rank, " is computing its part and gets no processor time");
    }
  }
  return described.empty() ? "all ranks have arrived" : described;
}

// Tells a rank that waits for this one in a send or receive whether this rank's program can still
// make the other call. Returns when to look again.
std::chrono::milliseconds Engine::note_attendance(const Operation& op) {
  const bool host_is_waiting = op.ahead != nullptr && op.ahead->host_is_waiting();
  segment_.record(rank_).host_is_waiting.store(host_is_waiting ? op.lane.ordinal() + 1 : 0,
                                               std::memory_order_relaxed);
  return std::chrono::milliseconds(500);
}

void Engine::check_time_limits(Operation& op) {
  if (!op.waiting) {
    op.waiting = true;
    op.limit = wait_limit_.get();
    op.deadline = Deadline::after(op.limit.time);
    op.report = Deadline::after(hang_report_);
  }
  const auto doing = [&] {
    return text("op ", op.lane.number(), " of stream ", op.lane.ordinal(), ", ", describe(op.call));
  };
  for (int rank = 0; rank < size_; ++rank) {
    // First whether it has gone: it may have come, finished and gone just now.
    const bool departed = segment_.has_departed(rank);
    if (!departed || op.lane.arrived(rank)) continue;
    fault_.raise(hcclSystemError, text(doing(), ": ", segment_.rank_text(rank),
                                       " has destroyed the communicator; every rank must "
                                       "make the same calls"));
    return;
  }
  if (op.deadline.expired()) {
    fault_.raise(hcclSystemError, text(doing(), ": rank ", rank_, " waited ",
                                       seconds(op.limit.time), " s: ", delay_text(op), "; ",
                                       op.limit.remedy(), " if such a wait is expected"));
    return;
  }
  if (op.report.expired() && !hang_reported_.exchange(true)) {
    log_line(LogLevel::error, "hang",
             text("rank ", rank_, " has waited ", seconds(hang_report_), " s in ", doing(), ": ",
                  delay_text(op)));
  }
}

}  // namespace hccl::node
