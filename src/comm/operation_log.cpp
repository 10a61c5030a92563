// SPDX-License-Identifier: Apache-2.0
// Formats the log lines about calls.
#include "comm/operation_log.h"

#include "base/log.h"
#include "base/text.h"

#include <bit>

namespace hccl::comm {
namespace {

std::string text_of(const WorkId& work) {
  return text("work ", work.ticket, " of stream ", work.stream);
}

}  // namespace

OperationLog::OperationLog(const Config& settings, int rank, bool explains_for_node)
    : rank_(rank),
      explains_(settings.explain && explains_for_node),
      tells_paths_(explains_ || log_enabled(LogLevel::debug)),
      traces_(log_enabled(LogLevel::trace)) {}

void OperationLog::note_path(Collective collective, std::uint64_t bytes, bool on_host,
                             const std::function<CallPath()>& path) {
  if (!tells_paths_) return;
  const auto size_class = static_cast<int>(std::bit_width(bytes));
  {
    const std::lock_guard lock(mutex_);
    if (!told_.emplace(collective, size_class * 2 + (on_host ? 1 : 0)).second) return;
  }
  const CallPath chosen = path();
  const std::uint64_t least = size_class == 0 ? 0 : std::uint64_t{1} << (size_class - 1);
  const std::string sizes =
      size_class <= 1 ? text(least, " B") : text(least, " to ", 2 * least - 1, " B");
  log_line(
      explains_ ? LogLevel::info : LogLevel::debug, explains_ ? "explain" : "plan",
      text("rank ", rank_, ": ", name_of(collective), " of ", sizes, " in ",
           on_host ? "host" : "device", " memory: ", chosen.name, ", because ", chosen.reason));
}

void OperationLog::note_queued(const std::string& call, std::uint64_t bytes,
                               const WorkId& work) const {
  if (!traces_) return;
  log_line(LogLevel::trace, "comm",
           text("rank ", rank_, ": queued ", call, ", ", bytes, " B, as ", text_of(work)));
}

device::Outcome OperationLog::trace(const std::string& call, const std::string& path,
                                    const WorkId& work,
                                    const std::function<device::Outcome()>& run) {
  const TimePoint now = std::chrono::steady_clock::now();
  bool is_new = false;
  TimePoint start;
  {
    const std::lock_guard lock(mutex_);
    const auto [entry, inserted] = running_.emplace(work, now);
    is_new = inserted;
    start = entry->second;
  }
  if (is_new) {
    log_line(LogLevel::trace, "comm",
             text("rank ", rank_, ": started ", call, ", ", text_of(work), ", by ", path));
  }
  const device::Outcome outcome = run();
  if (outcome == device::Outcome::would_block) return outcome;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  {
    const std::lock_guard lock(mutex_);
    running_.erase(work);
  }
  log_line(LogLevel::trace, "comm",
           text("rank ", rank_, ": ", outcome == device::Outcome::success ? "ended " : "failed ",
                call, ", ", text_of(work), ", after ", took.count(), " us"));
  return outcome;
}

}  // namespace hccl::comm
