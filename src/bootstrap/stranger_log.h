// SPDX-License-Identifier: Apache-2.0
// Log lines about rejected connections, limited in rate so that a stranger cannot fill the disk.
#pragma once

#include "base/log.h"

#include <chrono>
#include <string>

namespace hccl::bootstrap {

class StrangerLog {
 public:
  void report(const std::string& address, const std::string& why) {
    const auto now = std::chrono::steady_clock::now();
    if (now - period_start_ >= kPeriod) {
      if (unsaid_ > 0) {
        log(LogLevel::warning, "bootstrap", "rejected ", unsaid_, " more connections");
      }
      period_start_ = now;
      said_ = 0;
      unsaid_ = 0;
    }
    if (said_ == kMostPerPeriod) {
      ++unsaid_;
      return;
    }
    ++said_;
    log(LogLevel::warning, "bootstrap", "rejected a connection from ", address, ": it ", why);
  }

 private:
  static constexpr std::chrono::seconds kPeriod{10};
  static constexpr int kMostPerPeriod = 5;

  std::chrono::steady_clock::time_point period_start_;
  int said_ = 0;
  int unsaid_ = 0;
};

}  // namespace hccl::bootstrap
