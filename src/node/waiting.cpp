// SPDX-License-Identifier: Apache-2.0
// Patience: deadlines, the hang report, and peers that will never come.
#include "node/waiting.h"

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"

#include <chrono>

namespace hccl::node {
namespace {

double seconds(std::chrono::milliseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::vector<int> Engine::missing_ranks(const Lane& lane) const {
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (!lane.arrived(rank)) missing.push_back(rank);
  }
  return missing;
}

std::string Engine::missing_text(const Lane& lane) const {
  std::string described;
  for (const int rank : missing_ranks(lane)) {
    const RankRecord& record = control_.header().records[rank];
    if (!described.empty()) described += "; ";
    described += rank_text(rank);
    const char state = process_state(peers_[static_cast<std::size_t>(rank)].pid);
    const std::uint32_t elsewhere = record.in_operation.load(std::memory_order_relaxed);
    if (state == 'T' || state == 't') {
      described += " is stopped (SIGSTOP or a debugger)";
    } else if (elsewhere == 0) {
      described += " has not called it";
    } else if (elsewhere - 1 == lane.ordinal()) {
      described += " is about to arrive";
    } else {
      described +=
          text(" is in an operation of its stream ", elsewhere - 1, " of this communicator");
    }
  }
  return described.empty() ? "all ranks have arrived" : described;
}

void Engine::check_patience(Operation& op) {
  if (!op.waiting) {
    op.waiting = true;
    op.deadline = Deadline::after(operation_timeout_);
    op.report = Deadline::after(hang_report_);
  }
  const auto doing = [&] {
    return text("op ", op.lane.number(), " of stream ", op.lane.ordinal(), ", ", describe(op.call));
  };
  for (const int rank : missing_ranks(op.lane)) {
    if (control_.header().records[rank].presence.load(std::memory_order_seq_cst) !=
        Presence::departed)
      continue;
    fault_.raise(hcclSystemError, text(doing(), ": ", rank_text(rank),
                                       " has destroyed the communicator; every rank must "
                                       "make the same calls"));
    return;
  }
  if (op.deadline.expired()) {
    fault_.raise(hcclSystemError,
                 text(doing(), ": rank ", rank_, " waited ", seconds(operation_timeout_),
                      " s: ", missing_text(op.lane), "; raise HCCL_TIMEOUT if that is no fault"));
    return;
  }
  if (op.report.expired() && !hang_reported_.exchange(true)) {
    log_line(LogLevel::error, "hang",
             text("rank ", rank_, " has waited ", seconds(hang_report_), " s in ", doing(), ": ",
                  missing_text(op.lane)));
  }
}

}  // namespace hccl::node
