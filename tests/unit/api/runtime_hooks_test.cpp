// SPDX-License-Identifier: Apache-2.0
// Calls the C++ functions that tools look up by mangled name.
#include "api/runtime_hooks.h"

#include "api/version.h"

#include <hccl.h>
#include <synapse_api.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <hccl_emulation.h>
#include <unistd.h>

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

// A kernel that runs until the flag is set.
void run_until_set(void* flag) {
  while (!*static_cast<std::atomic<bool>*>(flag))
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

TEST(RuntimeHooks, SynchroniseAllDevices) {
  EXPECT_EQ(hcclSynchronizeAllStreams(), hcclInternalError) << "before synInitialize";
  // A unique node id keeps the test from sharing modules with other programs on this machine.
  const std::string node = "test-" + std::to_string(getpid());
  ASSERT_EQ(setenv("HCCL_NODE_ID", node.c_str(), 1), 0);
  ASSERT_EQ(synInitialize(), synSuccess);
  EXPECT_EQ(hcclSynchronizeAllStreams(), hcclSuccess) << "without a device";
  std::array<synDeviceId, 2> devices{};
  std::array<synStreamHandle, 2> streams{};
  for (std::size_t i = 0; i < devices.size(); ++i) {
    ASSERT_EQ(synDeviceAcquire(&devices[i], nullptr), synSuccess) << synGetLastErrorMessage();
    ASSERT_EQ(synStreamCreateGeneric(&streams[i], devices[i], 0), synSuccess);
  }
  std::atomic<bool> done{false};
  ASSERT_EQ(hcclEmulationLaunch(streams[1], run_until_set, &done), hcclSuccess);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
  });
  EXPECT_EQ(hcclSynchronizeAllStreams(), hcclSuccess);
  EXPECT_EQ(synStreamQuery(streams[1]), synSuccess);
  other.join();
  EXPECT_EQ(synDeviceRelease(devices[0]), synSuccess);
  EXPECT_EQ(hcclSynchronizeAllStreams(), hcclSuccess);
  EXPECT_EQ(synDestroy(), synSuccess);
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
