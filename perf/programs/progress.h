// SPDX-License-Identifier: Apache-2.0
// A line on a terminal that shows the phase of a long row. Prints nothing if stderr is not a
// terminal.
#pragma once

#include <string>

namespace hccl_perf {

class Progress {
 public:
  Progress();
  // Replaces the previous line with `what`.
  void show(const std::string& what);
  // Removes the line. Call it before anything else is printed.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace hccl_perf
