// SPDX-License-Identifier: Apache-2.0
// Tests that rejected connections are logged at a limited rate.
#include "base/rejection_log.h"

#include "base/config.h"
#include "text_parts.h"

#include <string>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

// Reports 100 connections, every second of which has sent something. Returns the log.
std::string log_at(LogLevel level) {
  Config config;
  config.log_level = level;
  configure_log(config);
  testing::internal::CaptureStderr();
  {
    RejectionLog rejections("test");
    for (int i = 0; i < 50; ++i) {
      rejections.report([] { return std::string("somebody"); }, "sent garbage");
      rejections.report_silent([] { return std::string("nobody"); });
    }
  }
  configure_log(Config{});
  return testing::internal::GetCapturedStderr();
}

TEST(RejectionLog, WritesFewLinesAtAnyLevel) {
  const std::string warnings = log_at(LogLevel::warning);
  EXPECT_EQ(count_of(warnings, "rejected a connection from somebody: it sent garbage"), 5U);
  EXPECT_EQ(count_of(warnings, "nobody"), 0U);
  EXPECT_EQ(count_of(warnings, "rejected 45 more connections"), 1U) << warnings;
  const std::string all = log_at(LogLevel::info);
  EXPECT_EQ(count_of(all, "somebody"), 5U) << all;
  EXPECT_EQ(count_of(all, "nobody connected and closed the connection"), 5U) << all;
  EXPECT_EQ(count_of(all, "rejected 45 more connections"), 1U) << all;
  EXPECT_EQ(count_of(all, "45 more peers connected and closed the connection"), 1U) << all;
}

}  // namespace
}  // namespace hccl::test
