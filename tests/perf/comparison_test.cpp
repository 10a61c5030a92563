// SPDX-License-Identifier: Apache-2.0
// Tests the comparison of two runs whose timings are noisy.
#include "comparison.h"

#include "sample_results.h"
#include "support/text_parts.h"

#include <random>

namespace hccl_perf {
namespace {

using hccl::test::expect_parts;

constexpr double kThreshold = 10;  // percent

// Generates times with median `centre` * 100 us and log-normal noise of the given relative
// deviation.
class NoisyTimes {
 public:
  explicit NoisyTimes(double deviation) : noise_(0, deviation) {}
  std::vector<double> operator()(double centre, std::size_t samples = 7) {
    std::vector<double> times(samples);
    for (double& time : times) time = 1e5 * centre * std::exp(noise_(generator_));
    return times;
  }

 private:
  std::mt19937 generator_{20260501};
  std::normal_distribution<double> noise_;
};

// Compares a thousand pairs of runs: the first run of a pair has centre 1, and the second `after`.
// Returns how many pairs get `verdict`.
std::size_t count(Verdict verdict, double deviation, double after, std::size_t samples = 7) {
  NoisyTimes times(deviation);
  std::size_t found = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto before = times(1, samples);
    if (judge(before, times(after, samples), kThreshold).verdict == verdict) ++found;
  }
  return found;
}

TEST(Judge, ReportsAClearChange) {
  EXPECT_EQ(judge({100, 101, 99, 100, 102}, {120, 121, 119, 122, 120}, 10).verdict,
            Verdict::slower);
  EXPECT_EQ(judge({120, 121, 119, 122, 120}, {100, 101, 99, 100, 102}, 10).verdict,
            Verdict::faster);
  const Judgement same = judge({100, 101, 99, 100, 102}, {104, 105, 103, 105, 104}, 10);
  EXPECT_EQ(same.verdict, Verdict::same);
  EXPECT_NEAR(same.change, 0.04, 1e-12);
  EXPECT_EQ(same.before, 100);
  EXPECT_EQ(same.now, 104);
}

TEST(Judge, AppliesTheThreshold) {
  const std::vector<double> before{100, 101, 99, 100, 102};
  const std::vector<double> after{108, 109, 107, 108, 108};
  EXPECT_EQ(judge(before, after, 10).verdict, Verdict::same);
  EXPECT_EQ(judge(before, after, 5).verdict, Verdict::slower);
}

TEST(Judge, IgnoresAFewDisturbedPasses) {
  EXPECT_EQ(
      judge({100, 101, 99, 100, 102, 100, 101}, {100, 101, 900, 99, 102, 800, 100}, 10).verdict,
      Verdict::same);
}

TEST(Judge, ReportsNoiseIfMostOfARunIsDisturbed) {
  EXPECT_EQ(
      judge({100, 101, 99, 100, 102, 100, 101}, {150, 151, 149, 150, 152, 150, 99}, 10).verdict,
      Verdict::noise);
}

TEST(Judge, DoesNotReportScatteredTimesAsEqual) {
  EXPECT_EQ(judge({50, 80, 100, 150, 200}, {55, 79, 101, 149, 210}, 10).verdict, Verdict::noise);
}

TEST(Judge, SeesNoChangeWhereThereIsNone) {
  for (const double deviation : {0.005, 0.02, 0.05, 0.1, 0.3}) {
    EXPECT_LE(count(Verdict::slower, deviation, 1), 5U) << deviation;
    EXPECT_LE(count(Verdict::faster, deviation, 1), 5U) << deviation;
  }
  EXPECT_GE(count(Verdict::same, 0.01, 1), 990U);
}

TEST(Judge, ReportsAChangeAboveTheNoise) {
  EXPECT_GE(count(Verdict::slower, 0.02, 1.2), 990U);
  EXPECT_GE(count(Verdict::faster, 0.02, 1 / 1.2), 990U);
  EXPECT_GE(count(Verdict::slower, 0.05, 1.5), 990U);
  EXPECT_EQ(count(Verdict::faster, 0.05, 1.5), 0U);
}

TEST(Judge, DetectsSmallerChangesWithMorePasses) {
  EXPECT_GT(count(Verdict::slower, 0.05, 1.2, 15), count(Verdict::slower, 0.05, 1.2, 5));
}

Baseline baseline_of(const std::vector<Row>& rows) {
  Baseline baseline;
  baseline.path = "before.json";
  baseline.started = "2026-01-01T00:00:00Z";
  baseline.host = {"somewhere", "Linux", "Some CPU", 16};
  baseline.cells = cell_samples(rows, Averaging::average);
  return baseline;
}

Row times(std::uint64_t bytes, double centre, int root = -1) {
  return sample_row("reduce", bytes,
                    {centre, 1.01 * centre, 0.99 * centre, 1.005 * centre, 0.995 * centre}, root);
}

TEST(Comparison, JudgesCellByCell) {
  const Options options = sample_options("reduce");
  Row half_slower = times(2048, 1000);
  half_slower.in_place = times(2048, 1300).in_place;
  const Results now = sample_results(options, {times(1024, 1000), half_slower, times(4096, 700)});
  const Comparison compared(baseline_of({times(1024, 1000), times(2048, 1000), times(4096, 1000)}),
                            now);
  EXPECT_EQ(compared.count(Verdict::same), 3U);
  EXPECT_EQ(compared.count(Verdict::slower), 1U);
  EXPECT_EQ(compared.count(Verdict::faster), 2U);
  EXPECT_EQ(compared.count(Verdict::noise), 0U);
  const std::string shown = compared.to_text();
  EXPECT_NE(
      shown.find("#        2048 bfloat16    max    -1      in_place        1.00        1.30   "
                 "+30.0%    2.7%  slower\n"),
      std::string::npos)
      << shown;
  expect_parts(shown, {"# Compared            : 1 slower, 2 faster, 3 same, 0 noise\n"});
  EXPECT_EQ(shown.find("another machine"), std::string::npos) << shown;
}

TEST(Comparison, AppliesTheThresholdOfTheOptions) {
  Options options = sample_options("reduce");
  options.compare_threshold = 50;
  const Comparison compared(baseline_of({times(1024, 1000)}),
                            sample_results(options, {times(1024, 1300)}));
  EXPECT_EQ(compared.count(Verdict::same), 2U);
}

TEST(Comparison, PrintsCommentsOnly) {
  const Options options = sample_options("reduce");
  const Results now = sample_results(options, {times(1024, 1000)});
  std::istringstream lines(Comparison(baseline_of({times(1024, 1000)}), now).to_text());
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(line[0], '#') << line;
}

TEST(Comparison, CountsCellsMissingFromTheBaseline) {
  const Options options = sample_options("reduce");
  const Results now =
      sample_results(options, {times(1024, 1000, 0), times(1024, 1000, 1), times(8192, 1000, 0)});
  const Comparison compared(baseline_of({times(1024, 1000, 0)}), now);
  EXPECT_EQ(compared.count(Verdict::same), 2U);
  EXPECT_EQ(compared.not_in_baseline(), 4U);
  expect_parts(compared.to_text(), {", 4 not in the baseline\n"});
}

TEST(Comparison, CombinesRowsOfTheSameCell) {
  const Options options = sample_options("reduce");
  // The second row alone would count as slower. Combined with the first, the difference is noise.
  const Results now = sample_results(options, {times(1024, 1000), times(1024, 1300)});
  const Comparison compared(baseline_of({times(1024, 1000)}), now);
  EXPECT_EQ(compared.count(Verdict::noise), 2U);
  EXPECT_EQ(compared.count(Verdict::slower), 0U);
}

TEST(Comparison, ReportsADifferentMachine) {
  const Options options = sample_options("reduce");
  const Results now = sample_results(options, {times(1024, 1000)});
  Baseline baseline = baseline_of({times(1024, 1000)});
  baseline.host.cores = 8;
  EXPECT_NE(Comparison(baseline, now).to_text().find("another machine: somewhere, 8 cores"),
            std::string::npos);
}

}  // namespace
}  // namespace hccl_perf
