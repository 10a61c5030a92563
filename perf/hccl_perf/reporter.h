// SPDX-License-Identifier: Apache-2.0
// Rank 0's output: the table row by row, and at the end the result files and the comparison.
#pragma once

#include "baseline.h"
#include "board.h"
#include "progress.h"
#include "results.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hccl_perf {

class Reporter {
 public:
  // Prints the table's header. `baseline` may be null. `options` and `baseline` must outlive the
  // reporter.
  Reporter(const Options& options, const Baseline* baseline, const std::vector<RankFacts>& ranks);

  void announce(Phase phase, std::uint64_t bytes);
  void row(const Row& row);
  // Prints the footer, writes the files, and prints the comparison if there is a baseline. Throws
  // RunError.
  void finish();

  // Returns whether any cell is slower than in the baseline. Call it after finish().
  [[nodiscard]] bool slower() const { return slower_; }

 private:
  void print(const std::string& lines);

  const Options& options_;
  const Baseline* baseline_;
  Progress progress_;
  Results results_;
  bool slower_ = false;
};

}  // namespace hccl_perf
