// SPDX-License-Identifier: Apache-2.0
// Calls the C++ functions that tools look up by mangled name, as a tool would, without a device.
#include "api/runtime_hooks.h"

#include "api/version.h"

#include <hccl.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace hccl::api {
namespace {

TEST(RuntimeHooks, SucceedIfThereIsNothingToDo) {
  EXPECT_EQ(hcclInitDevice(0), hcclSuccess);
  EXPECT_EQ(hcclInitDevice(0), hcclSuccess);
  EXPECT_EQ(hcclInitDeviceGaudi(0), hcclSuccess);
  EXPECT_EQ(hcclDestroyDevice(), hcclSuccess);
  EXPECT_EQ(hcclFlushSubmissions(nullptr), hcclSuccess);
  EXPECT_EQ(hcclFlushSubmissionsAllStreams(), hcclSuccess);
  EXPECT_EQ(hcclDfaUpdateState(DfaPhase::NONE), hcclSuccess);
  EXPECT_FALSE(hcclIsACcbHalfFull(0));
  hcclSetTraceMarker(nullptr, 0);
}

TEST(RuntimeHooks, RefuseTransportEvents) {
  hcclEventHandle event;
  EXPECT_EQ(hcclEventRecord(&event, nullptr), hcclInvalidArgument);
  EXPECT_EQ(hcclSynchronizeEvent(event), hcclUnsupported);
  ASSERT_NE(hcclGetLastErrorMessage(), nullptr);
  EXPECT_NE(std::string(hcclGetLastErrorMessage()).find("hcclSynchronizeEvent"), std::string::npos);
}

TEST(RuntimeHooks, ReportWhyStreamCannotBeSynchronised) {
  EXPECT_NE(hcclSynchronizeStream(nullptr), hcclSuccess);
  EXPECT_NE(hcclGetLastErrorMessage(), nullptr);
}

TEST(RuntimeHooks, TruncateVersionToBuffer) {
  std::array<char, 64> text{};
  EXPECT_EQ(hcclGetVersionString(text.data(), text.size()), hcclSuccess);
  EXPECT_STREQ(text.data(), kVersionText);
  EXPECT_EQ(hcclGetVersionString(text.data(), 5), hcclSuccess);
  EXPECT_EQ(std::string(text.data()), std::string(kVersionText).substr(0, 4));
  EXPECT_EQ(hcclGetVersionString(nullptr, 5), hcclInvalidArgument);
  EXPECT_EQ(hcclGetVersionString(text.data(), 0), hcclInvalidArgument);
}

}  // namespace
}  // namespace hccl::api
