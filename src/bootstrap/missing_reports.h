// SPDX-License-Identifier: Apache-2.0
// While ranks wait for others to join, schedules at most two reports of the missing ranks: one
// after 5 s, to show early which ranks were never started, and one after HCCL_HANG_REPORT. If
// HCCL_HANG_REPORT is not longer than 5 s, there is only the second report.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace hccl::bootstrap {

class MissingReports {
 public:
  using Duration = std::chrono::milliseconds;
  static constexpr Duration kFirst{5000};
  static constexpr int kMost = 2;

  // `hang_report`: HCCL_HANG_REPORT; 0 disables all reports.
  explicit MissingReports(Duration hang_report) : last_(hang_report) {}

  // Returns the time from the beginning of the wait until the next report, or nothing if no report
  // is left.
  [[nodiscard]] std::optional<Duration> next() const {
    if (last_.count() <= 0) return std::nullopt;
    const Duration first = std::min(kFirst, last_);
    if (made_ == 0) return first;
    if (made_ == 1 && last_ > first) return last_;
    return std::nullopt;
  }
  void note_made() { ++made_; }

 private:
  Duration last_;
  int made_ = 0;
};

}  // namespace hccl::bootstrap
