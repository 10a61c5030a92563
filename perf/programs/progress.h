// SPDX-License-Identifier: Apache-2.0
// The line that tells a person at a terminal what a long row is doing. It is silent when stderr is
// not a terminal.
#pragma once

#include <string>

namespace hccl_perf {

class Progress {
 public:
  Progress();
  // Shows `what` in place of the line before.
  void show(const std::string& what);
  // Takes the line away, before anything else is printed.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace hccl_perf
