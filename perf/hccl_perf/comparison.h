// SPDX-License-Identifier: Apache-2.0
// --compare: judges whether a cell is faster or slower than in an earlier run. Compares medians of
// timed passes; the spread of the passes measures the noise.
#pragma once

#include "baseline.h"
#include "results.h"

#include <string>
#include <vector>

namespace hccl_perf {

enum class Verdict { same, faster, slower, noise };

struct Judgement {
  double before = 0;  // median nanoseconds
  double now = 0;
  double change = 0;  // relative change of the median: 0.1 is 10 % slower
  double noise = 0;   // the largest relative change that may be due to chance
  Verdict verdict = Verdict::noise;
};

// Compares two non-empty samples in nanoseconds. The verdict is `faster` or `slower` if the change
// exceeds the threshold and the noise, and even the fastest pass of the slower run took longer than
// the median of the faster run: a temporary disturbance slows some passes down, but speeds none up.
// The verdict is `same` if the change does not exceed the threshold and the noise is below the
// threshold. Otherwise, or if the earlier median is not positive, the verdict is `noise`.
[[nodiscard]] Judgement judge(const std::vector<double>& before, const std::vector<double>& now,
                              double threshold_percent);

struct JudgedCell {
  CellKey key;
  Judgement judgement;
};

class Comparison {
 public:
  // Judges each cell of `results` that is also in the baseline.
  Comparison(const Baseline& baseline, const Results& results);

  [[nodiscard]] std::size_t count(Verdict verdict) const;
  // Returns the number of cells of the run that are not in the baseline.
  [[nodiscard]] std::size_t not_in_baseline() const { return not_in_baseline_; }

  // Returns the comment lines below the table.
  [[nodiscard]] std::string to_text() const;

 private:
  std::string heading_;
  std::vector<JudgedCell> cells_;
  std::size_t not_in_baseline_ = 0;
};

}  // namespace hccl_perf
