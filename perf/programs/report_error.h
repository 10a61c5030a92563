// SPDX-License-Identifier: Apache-2.0
// Lines on stderr, each in one write so that those of several ranks do not mix.
#pragma once

#include <string>

namespace hccl_perf {

// Sets the program's name for errors, hccl-perf by default. Call it before there are other threads.
void set_program_name(const char* name);

// "hccl-perf: <message>\n", clearing a progress line before it on a terminal.
void report_error(const std::string& message);

}  // namespace hccl_perf
