// SPDX-License-Identifier: Apache-2.0
// Judges cells and formats the verdicts.
#include "comparison.h"

#include "quantities.h"
#include "statistics.h"
#include "text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace hccl_perf {
namespace {

// Returns the standard error of the median of normally distributed samples. Estimates the standard
// deviation from the median absolute deviation. 1.2533 is sqrt(pi / 2), and 1.4826 is 1 /
// Phi^-1(3/4).
double median_error(const std::vector<double>& samples) {
  const double deviation = 1.4826 * median_deviation(samples);
  return 1.2533 * deviation / std::sqrt(static_cast<double>(samples.size()));
}

double least(const std::vector<double>& samples) {
  return *std::min_element(samples.begin(), samples.end());
}

const char* name_of(Verdict verdict) {
  constexpr std::array kNames{"same", "faster", "slower", "noise"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

std::string heading(const Baseline& baseline, const Results& results) {
  std::string lines =
      text("#\n# Compared with ", baseline.path, " (", baseline.host.host, ", ", baseline.started,
           "): medians of the timed passes;\n# a change counts if it exceeds both ",
           results.options.compare_threshold, "% and the noise\n");
  const HostFacts& then = baseline.host;
  const HostFacts& here = results.host;
  if (then.host != here.host || then.cpu != here.cpu || then.cores != here.cores) {
    lines += text("# Note: the baseline is from another machine: ", then.host, ", ", then.cores,
                  " cores, ", then.cpu, "; this is ", here.host, ", ", here.cores, " cores, ",
                  here.cpu, "\n");
  }
  return lines;
}

std::string padded(const std::string& word, std::size_t width) {
  return word.size() < width ? std::string(width - word.size(), ' ') + word : word;
}

std::string line(const std::vector<std::string>& words) {
  constexpr std::size_t kWidths[] = {11, 8, 6, 5, 13, 11, 11, 8, 7, 7};
  std::string written = "#";
  for (std::size_t i = 0; i < words.size(); ++i) written += ' ' + padded(words[i], kWidths[i]);
  return written + "\n";
}

std::string percent(double ratio) { return text(decimal(ratio * 100, 1), "%"); }

}  // namespace

Judgement judge(const std::vector<double>& before, const std::vector<double>& now,
                double threshold_percent) {
  // The noise, in standard errors. It is more than the usual two or three, because the deviation of
  // a few samples is itself uncertain.
  constexpr double kErrors = 4;
  Judgement judged{.before = median(before), .now = median(now)};
  if (judged.before <= 0) return judged;
  judged.change = judged.now / judged.before - 1;
  judged.noise = kErrors * std::hypot(median_error(before), median_error(now)) / judged.before;
  const double threshold = threshold_percent / 100;
  if (judged.noise >= std::max(std::abs(judged.change), threshold)) return judged;
  if (std::abs(judged.change) <= threshold) {
    judged.verdict = Verdict::same;
  } else if (judged.change > 0 && least(now) > judged.before) {
    judged.verdict = Verdict::slower;
  } else if (judged.change < 0 && least(before) > judged.now) {
    judged.verdict = Verdict::faster;
  }
  return judged;
}

Comparison::Comparison(const Baseline& baseline, const Results& results)
    : heading_(heading(baseline, results)) {
  const CellSamples now = cell_samples(results.rows, results.options.averaging);
  for (const CellKey& key : now.keys) {
    const auto before = baseline.cells.samples.find(key);
    if (before == baseline.cells.samples.end()) {
      ++not_in_baseline_;
      continue;
    }
    cells_.push_back(
        {key, judge(before->second, now.samples.at(key), results.options.compare_threshold)});
  }
}

std::size_t Comparison::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::count_if(
      cells_.begin(), cells_.end(),
      [verdict](const JudgedCell& cell) { return cell.judgement.verdict == verdict; }));
}

std::string Comparison::to_text() const {
  std::string lines = heading_;
  lines += line({"size", "type", "redop", "root", "placement", "before", "now", "change", "noise",
                 "verdict"});
  lines += line({"(B)", "", "", "", "", "(us)", "(us)", "", "", ""});
  for (const auto& [key, judged] : cells_) {
    lines += line({text(key.size_bytes), key.type, key.redop, text(key.root),
                   placement_name(key.placement), decimal(judged.before / 1e3, 2),
                   decimal(judged.now / 1e3, 2),
                   text(judged.change < 0 ? "" : "+", percent(judged.change)),
                   percent(judged.noise), name_of(judged.verdict)});
  }
  lines +=
      text("# Compared            : ", count(Verdict::slower), " slower, ", count(Verdict::faster),
           " faster, ", count(Verdict::same), " same, ", count(Verdict::noise), " noise");
  if (not_in_baseline_ > 0) lines += text(", ", not_in_baseline_, " not in the baseline");
  return lines + "\n#\n";
}

}  // namespace hccl_perf
