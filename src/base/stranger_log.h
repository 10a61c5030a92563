// SPDX-License-Identifier: Apache-2.0
// Log lines about rejected connections, limited in rate so that a stranger cannot fill the disk.
#pragma once

#include "base/log.h"

#include <chrono>
#include <string_view>
#include <utility>

namespace hccl {

class StrangerLog {
 public:
  ~StrangerLog() { say_how_many_more(); }
  // `subsystem`: of the log lines; a literal.
  explicit StrangerLog(const char* subsystem) : subsystem_(subsystem) {}
  StrangerLog(const StrangerLog&) = delete;
  StrangerLog& operator=(const StrangerLog&) = delete;

  // `who` makes the stranger's name, if it is to be said.
  template <class Name>
  void report(const Name& who, std::string_view why) {
    const auto now = std::chrono::steady_clock::now();
    if (now - period_start_ >= kPeriod) {
      say_how_many_more();
      period_start_ = now;
      said_ = 0;
    }
    if (said_ == kMostPerPeriod) {
      ++unsaid_;
      return;
    }
    ++said_;
    log(LogLevel::warning, subsystem_, "rejected a connection from ", who(), ": it ", why);
  }

  // At the end, and before a new period begins.
  void say_how_many_more() {
    const int unsaid = std::exchange(unsaid_, 0);
    if (unsaid > 0) log(LogLevel::warning, subsystem_, "rejected ", unsaid, " more connections");
  }

 private:
  static constexpr std::chrono::seconds kPeriod{10};
  static constexpr int kMostPerPeriod = 5;

  const char* subsystem_;
  std::chrono::steady_clock::time_point period_start_;
  int said_ = 0;
  int unsaid_ = 0;
};

}  // namespace hccl
