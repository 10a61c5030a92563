// SPDX-License-Identifier: Apache-2.0
// Files of results, which are written completely or not at all. `option` is the option that named
// the file, for messages.
#pragma once

#include <string>
#include <vector>

namespace hccl_perf {

// Throws UsageError if a file cannot be written at `path`. Leaves no file.
void require_writable(const std::string& option, const std::string& path);

// Writes a temporary file beside `path` and renames it once it is complete. Writes a special file
// (a device, a pipe) directly. Throws RunError.
void write_report(const std::string& option, const std::string& path, const std::string& contents);

struct NamedReport {
  const char* option;
  std::string path;  // empty if the report is not wanted
};

// Throws UsageError if two paths lead to the same file, however they are spelled and whether or not
// it exists. A special file may be named twice.
void require_distinct(const std::vector<NamedReport>& reports);

}  // namespace hccl_perf
