// SPDX-License-Identifier: Apache-2.0
// Summaries of times.
#include "statistics.h"

#include <numeric>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

TEST(AcrossRanks, KnowsEveryWayToAverageAndWhoIsSlowest) {
  const AcrossRanks times = across_ranks({3.0, 1.0, 8.0, 4.0});
  EXPECT_EQ(times.by(Averaging::rank0), 3.0);
  EXPECT_EQ(times.by(Averaging::average), 4.0);
  EXPECT_EQ(times.by(Averaging::minimum), 1.0);
  EXPECT_EQ(times.by(Averaging::maximum), 8.0);
  EXPECT_EQ(times.slowest_rank, 2);
}

TEST(Percentiles, AreValuesThatWereMeasured) {
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

TEST(Percentiles, OfNothingAreZero) { EXPECT_EQ(percentiles({}).maximum, 0.0); }

TEST(Median, IsInTheMiddleWhateverTheOrder) {
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

}  // namespace
}  // namespace hccl_perf
