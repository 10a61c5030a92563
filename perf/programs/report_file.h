// SPDX-License-Identifier: Apache-2.0
// Files of results, written whole or not at all. `option` is the one that named the file, for
// messages.
#pragma once

#include <string>
#include <vector>

namespace hccl_perf {

// Throws UsageError if the file cannot be written where `path` says, leaving nothing behind.
void require_writable(const std::string& option, const std::string& path);

// Writes a temporary file beside `path` and renames it once it is complete. A special file (a
// device, a pipe) is written directly. Throws RunError.
void write_report(const std::string& option, const std::string& path, const std::string& contents);

struct NamedReport {
  const char* option;
  std::string path;  // empty: none is wanted
};

// Throws UsageError if two paths lead to the same file, however they are spelled and whether or not
// it exists. Only a special file may be named twice.
void require_distinct(const std::vector<NamedReport>& reports);

}  // namespace hccl_perf
