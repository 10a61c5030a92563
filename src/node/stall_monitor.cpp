// SPDX-License-Identifier: Apache-2.0
// Formats the time-out error and the hang report.
#include "node/stall_monitor.h"

#include "base/log.h"
#include "base/text.h"

#include <algorithm>

namespace hccl::node {
namespace {

// The longest sleep between checks. Needed because some changes, such as a peer starting to wait in
// another call, do not ring the doorbell.
constexpr std::chrono::milliseconds kMaxSleep{500};

}  // namespace

void StallMonitor::time_out(const WaitLimit::Value& limit, const std::string& call,
                            const std::string& delay) {
  node_.fault().raise(hcclSystemError,
                      text(call, ": rank ", node_.rank(), " waited ", seconds(limit.time),
                           " s: ", delay, "; ", limit.remedy(), " if such a wait is expected"));
}

void StallMonitor::report_hang(const std::string& call, const std::string& delay) {
  log_line(LogLevel::error, "hang",
           text("rank ", node_.rank(), " has waited ", seconds(hang_report_), " s in ", call, ": ",
                delay));
}

void StallTimer::start() {
  if (started_) return;
  started_ = true;
  limit_ = monitor_.wait_limit_.get();
  deadline_ = Deadline::after(limit_.time);
  report_ = Deadline::after(monitor_.hang_report_);
}

Deadline::Duration StallTimer::time_to_check() const {
  Deadline::Duration time = deadline_.remaining(kMaxSleep);
  if (!monitor_.reported_.load(std::memory_order_relaxed))
    time = std::min(time, report_.remaining(kMaxSleep));
  return time + std::chrono::milliseconds(1);
}

}  // namespace hccl::node
