// SPDX-License-Identifier: Apache-2.0
// The results as a JSON file: nanoseconds, all options, all rows.
#pragma once

#include "host_facts.h"
#include "options.h"
#include "row.h"

#include <string>
#include <vector>

namespace hccl_perf {

// Throws UsageError if the file cannot be written where `path` says, leaving nothing behind.
void require_writable(const std::string& path);

class JsonReport {
 public:
  JsonReport(const Options& options, int library, std::vector<RankFacts> ranks);

  void add(const Row& row) { rows_.push_back(row); }

  [[nodiscard]] std::string to_text(const Totals& totals) const;

  // Whole or not at all: a file beside it takes its name once it is complete. What is no regular
  // file (a device, a pipe) is written directly. Throws RunError.
  void write(const Totals& totals) const;

 private:
  const Options& options_;
  int library_;
  std::vector<RankFacts> ranks_;
  HostFacts host_;
  std::vector<Row> rows_;
};

}  // namespace hccl_perf
