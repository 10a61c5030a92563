// SPDX-License-Identifier: Apache-2.0
// Logs rejected connections at a limited rate, so that a peer cannot fill the disk.
#pragma once

#include "base/log.h"

#include <chrono>
#include <string_view>
#include <utility>

namespace hccl {

class RejectionLog {
 public:
  ~RejectionLog() { report_omitted(); }
  // `subsystem`: a string literal that names the source in log lines.
  explicit RejectionLog(const char* subsystem) : subsystem_(subsystem) {}
  RejectionLog(const RejectionLog&) = delete;
  RejectionLog& operator=(const RejectionLog&) = delete;

  // Logs a rejected connection, or only counts it if kMostPerPeriod lines have been logged in this
  // period. who() returns the name of the other end, and is called only if a line is logged. `why`
  // completes the sentence "rejected a connection from ...: it".
  template <class Name>
  void report(const Name& who, std::string_view why) {
    if (may_log(rejected_))
      log(LogLevel::warning, subsystem_, "rejected a connection from ", who(), ": it ", why);
  }
  // Does the same, at a lower level, for a peer that has closed its connection without sending
  // anything.
  template <class Name>
  void report_silent(const Name& who) {
    if (log_enabled(LogLevel::info) && may_log(silent_))
      log(LogLevel::info, subsystem_, who(), " connected and closed the connection");
  }

  // Logs how many connections were only counted. Called by the destructor and at the start of each
  // period.
  void report_omitted() {
    const int rejected = std::exchange(rejected_.omitted, 0);
    const int silent = std::exchange(silent_.omitted, 0);
    if (rejected > 0)
      log(LogLevel::warning, subsystem_, "rejected ", rejected, " more connections");
    if (silent > 0)
      log(LogLevel::info, subsystem_, silent, " more peers connected and closed the connection");
  }

 private:
  static constexpr std::chrono::seconds kPeriod{10};
  static constexpr int kMostPerPeriod = 5;

  struct Lines {
    int logged = 0;
    int omitted = 0;
  };

  // Returns whether to log a line, and counts it as logged or omitted.
  [[nodiscard]] bool may_log(Lines& lines) {
    const auto now = std::chrono::steady_clock::now();
    if (now - period_start_ >= kPeriod) {
      report_omitted();
      period_start_ = now;
      rejected_.logged = silent_.logged = 0;
    }
    const bool is_allowed = lines.logged < kMostPerPeriod;
    ++(is_allowed ? lines.logged : lines.omitted);
    return is_allowed;
  }

  const char* subsystem_;
  std::chrono::steady_clock::time_point period_start_;
  Lines rejected_;
  Lines silent_;
};

}  // namespace hccl
