// SPDX-License-Identifier: Apache-2.0
// Tests the profiler calls, which must accept valid arguments once the runtime is initialised, and
// must return empty traces. Before initialisation, the profiler calls, except for the clock, and
// the affinity calls must be refused.
#include <hccl.h>
#include <synapse_api.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace {

class Profiler : public testing::Test {
 protected:
  void SetUp() override {
    // A unique node id keeps the test from sharing modules with other programs on this machine.
    const std::string node = "test-" + std::to_string(getpid());
    ASSERT_EQ(setenv("HCCL_NODE_ID", node.c_str(), 1), 0);
    ASSERT_EQ(synInitialize(), synSuccess);
    ASSERT_EQ(synDeviceAcquire(&device_, nullptr), synSuccess) << synGetLastErrorMessage();
  }
  void TearDown() override { EXPECT_EQ(synDestroy(), synSuccess); }

  synDeviceId device_ = SYN_INVALID_DEVICE_ID;
};

TEST_F(Profiler, RecordsNothing) {
  std::uint32_t bytes = 7;
  EXPECT_EQ(synProfilerQueryRequiredMemory(device_, &bytes), synSuccess);
  EXPECT_EQ(bytes, 0U);
  EXPECT_EQ(synProfilerSetUserBuffer(device_, nullptr), synSuccess);
  EXPECT_EQ(synProfilerStart(synTraceAll, device_), synSuccess);
  EXPECT_EQ(synProfilerAddCustomMeasurement("step", 5), synSuccess);
  EXPECT_EQ(synProfilerAddCustomMeasurementArgs("step", 5, nullptr, 0), synSuccess);
  EXPECT_EQ(synProfilerAddCustomMeasurementArgsAndThread("step", 5, nullptr, 0, "main"),
            synSuccess);
  EXPECT_EQ(synProfilerAddCustomEvent("step", 5, 6, nullptr, 0), synSuccess);
  EXPECT_EQ(synProfilerStop(synTraceAll, device_), synSuccess);
  std::size_t size = 7;
  std::size_t entries = 7;
  EXPECT_EQ(synProfilerGetTrace(synTraceAll, device_, synTraceFormatTEF, nullptr, &size, &entries),
            synSuccess);
  EXPECT_EQ(size, 0U);
  EXPECT_EQ(entries, 0U);
}

TEST_F(Profiler, RefusesInvalidArguments) {
  EXPECT_EQ(synProfilerStart(synTraceAll, device_ + 1), synInvalidArgument);
  EXPECT_EQ(synProfilerStart(synTraceTypeSize, device_), synInvalidArgument);
  EXPECT_EQ(synProfilerAddCustomMeasurement(nullptr, 5), synInvalidArgument);
  EXPECT_STRNE(synGetLastErrorMessage(), "");
}

TEST(BeforeInitialisation, ProfilerAndAffinityAreRefused) {
  std::uint32_t bytes = 0;
  std::uint64_t mask = 0;
  std::size_t size = 0;
  std::size_t entries = 0;
  EXPECT_EQ(synProfilerQueryRequiredMemory(0, &bytes), synUninitialized);
  EXPECT_EQ(synProfilerSetUserBuffer(0, nullptr), synUninitialized);
  EXPECT_EQ(synProfilerStart(synTraceAll, 0), synUninitialized);
  EXPECT_EQ(synProfilerStop(synTraceAll, 0), synUninitialized);
  EXPECT_EQ(synProfilerGetTrace(synTraceAll, 0, synTraceFormatTEF, nullptr, &size, &entries),
            synUninitialized);
  EXPECT_EQ(synProfilerAddCustomMeasurement("step", 5), synUninitialized);
  EXPECT_EQ(synStreamSetAffinity(0, nullptr, 1), synUninitialized);
  EXPECT_EQ(synStreamGetAffinity(0, nullptr, &mask), synUninitialized);
  EXPECT_EQ(synDeviceGetAffinityMaskRange(0, &mask), synUninitialized);
  EXPECT_EQ(synDeviceGetNextStreamAffinity(0, &mask), synUninitialized);
}

TEST_F(Profiler, ClockIsMonotonic) {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  ASSERT_EQ(synProfilerGetCurrentTimeNS(&before), synSuccess);
  ASSERT_EQ(synProfilerGetCurrentTimeNS(&after), synSuccess);
  EXPECT_LE(before, after);
}

TEST_F(Profiler, DeviceInitSucceeds) {
  EXPECT_EQ(hcclDeviceInit(nullptr, nullptr), hcclSuccess);
  EXPECT_EQ(hcclDeviceInit(&device_, nullptr), hcclInvalidArgument);
}

}  // namespace
