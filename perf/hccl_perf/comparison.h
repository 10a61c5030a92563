// SPDX-License-Identifier: Apache-2.0
// --compare: is this run slower than an earlier one? Judged cell by cell from the medians of the
// timed passes, with the spread of those passes as the measure of noise.
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
  double change = 0;  // of the median, relative to `before`: 0.1 is 10 % slower
  double noise = 0;   // a relative change this small may be chance
  Verdict verdict = Verdict::noise;
};

// A change counts if it is above the threshold and above the noise, and if even the fastest pass of
// the slower run took longer than the median of the other: what disturbs a machine for a while
// makes some passes slower, never all of them faster. No change above the threshold is `same` if
// the noise is below it. All else is `noise`. Both samples are nanoseconds, and not empty.
[[nodiscard]] Judgement judge(const std::vector<double>& before, const std::vector<double>& now,
                              double threshold_percent);

struct JudgedCell {
  CellKey key;
  Judgement judgement;
};

class Comparison {
 public:
  // Judges each cell of `results` that the baseline has, once; several rows of a cell are taken
  // together.
  Comparison(const Baseline& baseline, const Results& results);

  [[nodiscard]] std::size_t count(Verdict verdict) const;
  // Cells of the run that the baseline does not have.
  [[nodiscard]] std::size_t not_in_baseline() const { return not_in_baseline_; }

  // Comment lines for below the table.
  [[nodiscard]] std::string to_text() const;

 private:
  std::string heading_;
  std::vector<JudgedCell> cells_;
  std::size_t not_in_baseline_ = 0;
};

}  // namespace hccl_perf
