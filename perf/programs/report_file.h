// SPDX-License-Identifier: Apache-2.0
// Files of results, written whole or not at all. `option` is the one that named the file, for
// messages.
#pragma once

#include <string>

namespace hccl_perf {

// Throws UsageError if the file cannot be written where `path` says, leaving nothing behind.
void require_writable(const std::string& option, const std::string& path);

// A file beside it takes its name once it is complete. What is no regular file (a device, a pipe)
// is written directly. Throws RunError.
void write_report(const std::string& option, const std::string& path, const std::string& contents);

// Whether two paths lead to one file, be they spelled alike or not, be it there yet or not.
[[nodiscard]] bool same_report(const std::string& one, const std::string& other);

}  // namespace hccl_perf
