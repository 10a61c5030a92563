// SPDX-License-Identifier: Apache-2.0
// Writes lines to stderr, each in one write so that lines of several ranks do not mix.
#pragma once

#include <string>

namespace hccl_perf {

// Sets the program's name in errors, hccl-perf by default. Call it before other threads start.
void set_program_name(const char* name);

// Prints "<program name>: <message>\n". On a terminal, removes the progress line first.
void report_error(const std::string& message);

}  // namespace hccl_perf
