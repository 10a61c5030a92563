// SPDX-License-Identifier: Apache-2.0
// When to say that ranks are missing while others wait for them to join: early, for a rank that was
// never started shows at once, and again after HCCL_HANG_REPORT.
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

  // `hang_report`: HCCL_HANG_REPORT; 0 turns all reports off.
  explicit MissingReports(Duration hang_report) : last_(hang_report) {}

  // When the next report is due, since waiting began; nothing if there is none.
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
