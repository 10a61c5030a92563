// SPDX-License-Identifier: Apache-2.0
// Writes lines to stderr.
#include "report_error.h"

#include "text.h"

#include <cstdio>

#include <unistd.h>

namespace hccl_perf {
namespace {

const char* program_name = "hccl-perf";

}  // namespace

void set_program_name(const char* name) { program_name = name; }

void report_error(const std::string& message) {
  std::fflush(stdout);
  const char* clear = isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "";
  const std::string line = text(clear, program_name, ": ", message, "\n");
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace hccl_perf
