// SPDX-License-Identifier: Apache-2.0
// When ranks that wait for others say so: early, then at HCCL_HANG_REPORT, never twice at once.
#include "bootstrap/missing_reports.h"

#include <vector>

#include <gtest/gtest.h>

namespace hccl::bootstrap {
namespace {

using std::chrono::milliseconds;

std::vector<milliseconds> times(milliseconds hang_report) {
  MissingReports reports(hang_report);
  std::vector<milliseconds> due;
  while (const auto next = reports.next()) {
    due.push_back(*next);
    reports.note_made();
  }
  return due;
}

TEST(MissingReports, AreEarlyAndAtTheTimeOfHangReports) {
  EXPECT_EQ(times(milliseconds(30'000)), (std::vector{milliseconds(5'000), milliseconds(30'000)}));
}

TEST(MissingReports, AreOneIfHangReportsComeEarlier) {
  for (const int hang_report : {1, 100, 5'000})
    EXPECT_EQ(times(milliseconds(hang_report)), std::vector{milliseconds(hang_report)});
}

TEST(MissingReports, AreOffTogetherWithHangReports) { EXPECT_TRUE(times(milliseconds(0)).empty()); }

}  // namespace
}  // namespace hccl::bootstrap
