// SPDX-License-Identifier: Apache-2.0
// Result files, which are written completely or not at all, unless they are special files. Messages
// name `option`, the command-line option that gave the file's path.
#pragma once

#include <string>
#include <vector>

namespace hccl_perf {

// Throws UsageError if no file can be written at `path`. Leaves no file behind.
void require_writable(const std::string& option, const std::string& path);

// Writes a temporary file in the directory of `path`, and renames the complete file to `path`. If
// `path` is a symbolic link, replaces the link's target instead. Writes directly to a special file
// (a device, a pipe). Throws RunError.
void write_report(const std::string& option, const std::string& path, const std::string& contents);

struct NamedReport {
  const char* option;
  std::string path;  // empty if the report is not wanted
};

// Throws UsageError if two paths lead to the same file, even if the paths are spelled differently
// or the file does not exist yet. A special file may occur more than once.
void require_distinct(const std::vector<NamedReport>& reports);

}  // namespace hccl_perf
