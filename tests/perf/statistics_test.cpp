// SPDX-License-Identifier: Apache-2.0
// Tests summaries of times, and values derived from times.

#include "statistics.h"

#include "measurement.h"
#include "overlap.h"

#include <numeric>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

// Tests summaries of times.

TEST(AcrossRanks, SupportsEveryAverageAndNamesTheSlowestRank) {
  const AcrossRanks times = across_ranks({3.0, 1.0, 8.0, 4.0});
  EXPECT_EQ(times.by(Averaging::rank0), 3.0);
  EXPECT_EQ(times.by(Averaging::average), 4.0);
  EXPECT_EQ(times.by(Averaging::minimum), 1.0);
  EXPECT_EQ(times.by(Averaging::maximum), 8.0);
  EXPECT_EQ(times.slowest_rank, 2);
}

TEST(Percentiles, AreMeasuredValues) {
  std::vector<double> samples(200);
  std::iota(samples.rbegin(), samples.rend(), 1.0);
  const Percentiles found = percentiles(samples);
  EXPECT_EQ(found.minimum, 1.0);
  EXPECT_EQ(found.p50, 100.0);
  EXPECT_EQ(found.p95, 190.0);
  EXPECT_EQ(found.p99, 198.0);
  EXPECT_EQ(found.maximum, 200.0);
  EXPECT_DOUBLE_EQ(found.mean, 100.5);
}

TEST(Percentiles, OfOneSampleAreThatSample) {
  const Percentiles found = percentiles({7.0});
  EXPECT_EQ(found.minimum, 7.0);
  EXPECT_EQ(found.p50, 7.0);
  EXPECT_EQ(found.p99, 7.0);
  EXPECT_EQ(found.maximum, 7.0);
}

TEST(Percentiles, OfNoSampleAreZero) { EXPECT_EQ(percentiles({}).maximum, 0.0); }

TEST(Median, IsIndependentOfOrder) {
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({9, 1, 5, 7}), 6);
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median_position({9, 1, 5}), 2U);
  EXPECT_EQ(median_position({9, 1, 5, 7}), 2U) << "the lower one";
  EXPECT_EQ(median_position({4}), 0U);
}

TEST(MedianDeviation, IgnoresAnOutlier) {
  EXPECT_EQ(median_deviation({10, 11, 9, 10, 12, 8, 1000}), 1);
  EXPECT_EQ(median_deviation({5, 5, 5}), 0);
}

// Tests the number of iterations for --min-time.

TEST(IterationsFor, ExtrapolatesWithAMargin) {
  EXPECT_EQ(iterations_for(1.0, 20, 0.1), 220U);
  EXPECT_EQ(iterations_for(0.3, 100, 0.2), 165U);
}

TEST(IterationsFor, GrowsWithinBounds) {
  EXPECT_GT(iterations_for(0.1, 20, 0.099999), 20U);
  EXPECT_EQ(iterations_for(10.0, 20, 0.0), 20000U);
  EXPECT_EQ(iterations_for(10.0, 20, 1e-9), 20000U);
}

// Tests what percentage of a call is hidden behind computation.

TEST(OverlapPercent, IsTheHiddenPartOfTheCall) {
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 20), 0);    // one after the other
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 10), 100);  // both at once
  EXPECT_DOUBLE_EQ(overlap_percent(10, 8, 13), 50);
}

TEST(OverlapPercent, StaysBetween0And100) {
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 35), 0) << "computing and calling disturb each other";
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 9), 100);
  EXPECT_DOUBLE_EQ(overlap_percent(0, 10, 10), 0) << "nothing to hide";
}

}  // namespace
}  // namespace hccl_perf
