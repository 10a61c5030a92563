// SPDX-License-Identifier: Apache-2.0
// Implements the progress line.
#include "progress.h"

#include "text.h"

#include <unistd.h>

namespace hccl_perf {
namespace {

constexpr const char* kEraseLine = "\r\033[K";

void write_to_terminal(const std::string& line) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(const std::string& what) {
  if (!terminal_) return;
  write_to_terminal(text(kEraseLine, what));
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  write_to_terminal(kEraseLine);
  shown_ = false;
}

}  // namespace hccl_perf
