// SPDX-License-Identifier: Apache-2.0
// Tests several devices in one process: addresses, dma-bufs, and a communicator of all devices.
#include "check.h"
#include "ranks.h"
#include "scoped_environment.h"

#include <hccl.h>
#include <synapse_api.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr std::size_t kDevices = 4;
constexpr std::size_t kElements = 100'003;

// Uses all devices from one thread.
class Devices : public testing::Test {
 protected:
  void SetUp() override {
    succeed(synInitialize());
    for (Member& member : members_) {
      succeed(synDeviceAcquire(&member.device, nullptr));
      succeed(synStreamCreateGeneric(&member.stream, member.device, 0));
      succeed(synDeviceMalloc(member.device, kElements * 4, 0, 0, &member.memory));
    }
  }
  void TearDown() override { EXPECT_EQ(synDestroy(), synSuccess); }

  struct Member {
    synDeviceId device = SYN_INVALID_DEVICE_ID;
    synStreamHandle stream = nullptr;
    std::uint64_t memory = 0;
  };

  [[nodiscard]] std::vector<int> ids() const {
    std::vector<int> all;
    for (const Member& member : members_) all.push_back(static_cast<int>(member.device));
    return all;
  }
  static void expect_refused(int count, const std::vector<int>& devices) {
    std::array<hcclComm_t, kDevices> comms{};
    EXPECT_EQ(hcclCommInitAll(comms.data(), count, devices.data()), hcclInvalidArgument);
    EXPECT_NE(hcclGetLastErrorMessage(), nullptr);
    EXPECT_EQ(comms, (std::array<hcclComm_t, kDevices>{}));
  }

  std::array<Member, kDevices> members_;
};

void* device_pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the API does so
}

TEST_F(Devices, FormACommunicatorInListOrder) {
  std::array<hcclComm_t, kDevices> comms{};
  std::vector<int> order = ids();
  std::swap(order[0], order[3]);
  ASSERT_EQ(hcclCommInitAll(comms.data(), kDevices, order.data()), hcclSuccess)
      << hcclGetLastErrorMessage();
  for (std::size_t rank = 0; rank < kDevices; ++rank) {
    int value = -1;
    EXPECT_EQ(hcclCommUserRank(comms[rank], &value), hcclSuccess);
    EXPECT_EQ(value, static_cast<int>(rank));
    EXPECT_EQ(hcclCommSynDevice(comms[rank], &value), hcclSuccess);
    EXPECT_EQ(value, order[rank]);
  }
  const auto member_of = [&](std::size_t rank) -> Member& {
    return *std::ranges::find(members_, static_cast<synDeviceId>(order[rank]), &Member::device);
  };
  for (std::size_t rank = 0; rank < kDevices; ++rank) {
    const Member& member = member_of(rank);
    ASSERT_EQ(synMemsetD32Async(member.memory, static_cast<std::uint32_t>(1U << rank), kElements,
                                member.stream),
              synSuccess);
    ASSERT_EQ(hcclAllReduce(device_pointer(member.memory), device_pointer(member.memory), kElements,
                            hcclInt32, hcclSum, comms[rank], member.stream),
              hcclSuccess);
  }
  // A stream or memory of another device is refused.
  EXPECT_EQ(hcclAllReduce(device_pointer(member_of(0).memory), device_pointer(member_of(0).memory),
                          kElements, hcclInt32, hcclSum, comms[0], member_of(1).stream),
            hcclInvalidArgument);
  EXPECT_EQ(hcclAllReduce(device_pointer(member_of(1).memory), device_pointer(member_of(1).memory),
                          kElements, hcclInt32, hcclSum, comms[0], member_of(0).stream),
            hcclInvalidArgument);
  for (std::size_t rank = 0; rank < kDevices; ++rank) {
    const Member& member = member_of(rank);
    std::vector<std::uint32_t> result(kElements);
    ASSERT_EQ(synMemCopyAsync(member.stream, member.memory, kElements * 4,
                              reinterpret_cast<std::uint64_t>(result.data()), DRAM_TO_HOST),
              synSuccess);
    ASSERT_EQ(synStreamSynchronize(member.stream), synSuccess);
    EXPECT_EQ(result, std::vector<std::uint32_t>(kElements, 0xF)) << "rank " << rank;
  }
  for (hcclComm_t comm : comms) EXPECT_EQ(hcclCommDestroy(comm), hcclSuccess);
}

// synDeviceAcquire must succeed more than HCCL_DEVICE_COUNT times, so that two jobs that each use
// all devices can run at the same time. synDeviceAcquireByModuleId must refuse a module that does
// not exist.
TEST(ExtraDevices, CanBeAcquiredUnlessAModuleIsNamed) {
  const ScopedEnvironment node("HCCL_NODE_ID", "devices." + std::to_string(getpid()));
  const ScopedEnvironment two("HCCL_DEVICE_COUNT", "2");
  ASSERT_EQ(synInitialize(), synSuccess);
  std::uint32_t count = 0;
  EXPECT_EQ(synDeviceGetCount(&count), synSuccess);
  EXPECT_EQ(count, 2U);
  for (std::uint32_t module = 0; module < 5; ++module) {
    synDeviceId device = SYN_INVALID_DEVICE_ID;
    synDeviceInfoV2 info{};
    EXPECT_EQ(synDeviceAcquire(&device, nullptr), synSuccess) << "device " << module;
    EXPECT_EQ(synDeviceGetInfoV2(device, &info), synSuccess);
    EXPECT_EQ(info.deviceIndex, module);
  }
  synDeviceId device = SYN_INVALID_DEVICE_ID;
  EXPECT_EQ(synDeviceAcquireByModuleId(&device, 5), synNoDeviceFound);
  EXPECT_EQ(synDeviceAcquireByModuleId(&device, 1), synUnavailable) << "held above";
  EXPECT_EQ(synDestroy(), synSuccess);
}

int open_descriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

// Waits until the number of open descriptors stays the same, and returns that number. Servers close
// their descriptors on another thread, so the number may still be falling.
int settled_descriptors() {
  int last = -1;
  for (int same = 0; same < 5; usleep(20'000)) {
    const int now = open_descriptors();
    same = now == last ? same + 1 : 0;
    last = now;
  }
  return last;
}

// One thread must be able to fill the queues of all devices in turn, although the first device's
// calls cannot run before the last device's calls are queued.
TEST_F(Devices, AcceptCallsInTurnBeyondAFullQueue) {
  constexpr int kCalls = 5'000;
  std::array<hcclComm_t, kDevices> comms{};
  const std::vector<int> devices = ids();
  ASSERT_EQ(hcclCommInitAll(comms.data(), kDevices, devices.data()), hcclSuccess);
  for (std::size_t at = 0; at < kDevices; ++at) {
    void* const data = device_pointer(members_.at(at).memory);
    for (int call = 0; call < kCalls; ++call)
      succeed(
          hcclAllReduce(data, data, 2, hcclFloat32, hcclMax, comms.at(at), members_.at(at).stream));
  }
  for (const Member& member : members_) succeed(synStreamSynchronize(member.stream));
  for (hcclComm_t comm : comms) EXPECT_EQ(hcclCommDestroy(comm), hcclSuccess);
}

// Sets a short HCCL_INIT_TIMEOUT: if the root server itself lacks descriptors, a join fails only
// after that time.
class FewDescriptors : public Devices {
 protected:
  void SetUp() override {
    environment_.set("HCCL_INIT_TIMEOUT", "2");
    Devices::SetUp();
  }

 private:
  ScopedEnvironment environment_;
};

// If one device cannot join for lack of a descriptor, all devices must fail, and no descriptor may
// leak.
TEST_F(FewDescriptors, FailAllDevices) {
  // UBSan opens a pipe to test whether an address is readable.
  if (sanitized()) GTEST_SKIP() << "needs another build: sanitizers need descriptors themselves";
  std::array<hcclComm_t, kDevices> comms{};
  // The first call opens the control thread's descriptors, which stay open.
  ASSERT_EQ(hcclCommInitAll(comms.data(), kDevices, nullptr), hcclSuccess);
  for (hcclComm_t comm : comms) EXPECT_EQ(hcclCommDestroy(comm), hcclSuccess);
  const int before = settled_descriptors();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t enough = limit.rlim_cur;
  int failed = 0;
  for (rlim_t few = static_cast<rlim_t>(before); few < static_cast<rlim_t>(before) + 24; few += 3) {
    limit.rlim_cur = few;
    setrlimit(RLIMIT_NOFILE, &limit);
    const hcclResult_t result = hcclCommInitAll(comms.data(), kDevices, nullptr);
    const std::string text = result == hcclSuccess ? "" : hcclGetLastErrorMessage();
    limit.rlim_cur = enough;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (result == hcclSuccess) {
      for (hcclComm_t& comm : comms)
        EXPECT_EQ(hcclCommDestroy(std::exchange(comm, nullptr)), hcclSuccess);
      continue;
    }
    ++failed;
    EXPECT_NE(text, "");
  }
  EXPECT_GT(failed, 0);
  EXPECT_EQ(settled_descriptors(), before);
}

TEST_F(Devices, DefaultToTheAcquiredOnes) {
  ASSERT_EQ(ids(), (std::vector<int>{0, 1, 2, 3}));
  std::array<hcclComm_t, kDevices> comms{};
  ASSERT_EQ(hcclCommInitAll(comms.data(), 2, nullptr), hcclSuccess);
  EXPECT_EQ(hcclCommDestroy(comms[0]), hcclSuccess);
  EXPECT_EQ(hcclCommDestroy(comms[1]), hcclSuccess);
}

TEST_F(Devices, RefuseAnInvalidList) {
  expect_refused(2, {0, 9});
  expect_refused(2, {0, -1});
  expect_refused(2, {1, 1});
  expect_refused(0, {0});
  EXPECT_EQ(hcclCommInitAll(nullptr, 1, nullptr), hcclInvalidArgument);
}

TEST(CommInitAll, IsRefusedInStrictMode) {
  setenv("HCCL_STRICT", "1", 1);
  succeed(synInitialize());
  synDeviceId device = 0;
  succeed(synDeviceAcquire(&device, nullptr));
  hcclComm_t comm = nullptr;
  EXPECT_EQ(hcclCommInitAll(&comm, 1, nullptr), hcclInvalidUsage);
  succeed(synDestroy());
  unsetenv("HCCL_STRICT");
}

TEST_F(Devices, RefuseDmaBuffersOutsideTheirMemory) {
  int descriptor = -7;
  EXPECT_EQ(hcclLookupDMABuff(members_[1].memory, kElements * 4, nullptr), hcclInvalidArgument);
  EXPECT_EQ(hcclLookupDMABuff(0, 1, &descriptor), -hcclInvalidArgument);
  EXPECT_EQ(hcclLookupDMABuff(members_[1].memory, kElements * 4 + 1, &descriptor),
            -hcclInvalidArgument);
  EXPECT_EQ(hcclLookupDMABuff(members_[1].memory, 0, &descriptor), -hcclInvalidArgument);
  EXPECT_EQ(descriptor, -7);
}

TEST_F(Devices, ExportADmaBufferOrReportWhyNot) {
  const std::uint64_t address = members_[1].memory + 400;
  int descriptor = -7;
  const int result = hcclLookupDMABuff(address, 4, &descriptor);
  if (access("/dev/udmabuf", R_OK | W_OK) != 0) {
    EXPECT_EQ(result, -hcclUnsupported);
    EXPECT_NE(std::string(hcclGetLastErrorMessage()).find("/dev/udmabuf"), std::string::npos);
    return;  // without /dev/udmabuf, nothing else can be tested
  }
  ASSERT_EQ(result, 0) << hcclGetLastErrorMessage();
  ASSERT_EQ(synMemsetD32Async(address, 0x12345678, 1, members_[1].stream), synSuccess);
  ASSERT_EQ(synStreamSynchronize(members_[1].stream), synSuccess);
  void* const bytes = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, descriptor, 0);
  ASSERT_NE(bytes, MAP_FAILED);
  std::uint32_t value = 0;
  std::memcpy(&value, static_cast<std::byte*>(bytes) + address % 4096, sizeof value);
  EXPECT_EQ(value, 0x12345678U);
  munmap(bytes, 4096);
  close(descriptor);
}

}  // namespace
}  // namespace hccl::test
