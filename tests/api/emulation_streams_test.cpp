// SPDX-License-Identifier: Apache-2.0
// Tests stream positions: waiting for the work between two positions, and callbacks once that work
// has run.
#include "children.h"

#include <hccl.h>
#include <synapse_api.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <hccl_emulation.h>
#include <sys/mman.h>
#include <sys/wait.h>

namespace {

constexpr std::uint64_t kBytes = 4096;

void sleep_briefly() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

// A kernel that runs until the flag is set.
void wait_for_flag(void* flag) {
  while (!*static_cast<std::atomic<bool>*>(flag)) sleep_briefly();
}
void do_nothing(void*) {}

class StreamWork : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(synInitialize(), synSuccess);
    ASSERT_EQ(synDeviceAcquire(&device_, nullptr), synSuccess);
    ASSERT_EQ(synStreamCreateGeneric(&stream_, device_, 0), synSuccess);
    ASSERT_EQ(synDeviceMalloc(device_, kBytes, 0, 0, &memory_), synSuccess);
    void* const pages =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    pages_ = pages;
  }
  void TearDown() override {
    if (initialized_) {
      EXPECT_EQ(synDestroy(), synSuccess);
    }
    munmap(pages_, kBytes);
  }

  [[nodiscard]] std::uint64_t queued() const {
    std::uint64_t position = 0;
    EXPECT_EQ(hcclEmulationStreamPosition(stream_, &position, nullptr), hcclSuccess);
    return position;
  }
  [[nodiscard]] hcclResult_t wait(std::uint64_t after, std::uint64_t up_to,
                                  std::uint64_t timeout = HCCL_EMULATION_NO_TIMEOUT) const {
    return hcclEmulationStreamWait(stream_, after, up_to, timeout);
  }
  // Queues a copy that fails because its host memory becomes inaccessible before the copy runs.
  void queue_failing_copy() {
    open_ = false;
    ASSERT_EQ(hcclEmulationLaunch(stream_, wait_for_flag, &open_), hcclSuccess);
    ASSERT_EQ(synMemCopyAsync(stream_, reinterpret_cast<std::uint64_t>(pages_), kBytes, memory_,
                              HOST_TO_DRAM),
              synSuccess);
    ASSERT_EQ(mprotect(pages_, kBytes, PROT_NONE), 0);
    open_ = true;
  }

  synDeviceId device_ = 0;
  synStreamHandle stream_ = nullptr;
  std::uint64_t memory_ = 0;
  void* pages_ = nullptr;
  std::atomic<bool> open_{false};
  bool initialized_ = true;
};

// Counts callbacks and records their arguments. If `stream` is set, a callback also queues work on
// that stream and waits for that work.
struct Notification {
  std::atomic<int> calls{0};
  std::atomic<int> result{-1};
  std::string message;
  synStreamHandle stream = nullptr;
  hcclResult_t inner = hcclInternalError;  // result of the calls that the callback makes

  static void call(hcclResult_t result, const char* message, void* argument) {
    auto& notification = *static_cast<Notification*>(argument);
    notification.message = message;
    if (notification.stream != nullptr) {
      std::uint64_t position = 0;
      notification.inner = hcclEmulationLaunch(notification.stream, do_nothing, nullptr);
      if (notification.inner == hcclSuccess)
        notification.inner = hcclEmulationStreamPosition(notification.stream, &position, nullptr);
      if (notification.inner == hcclSuccess)
        notification.inner = hcclEmulationStreamWait(notification.stream, position - 1, position,
                                                     HCCL_EMULATION_NO_TIMEOUT);
    }
    notification.result = static_cast<int>(result);
    ++notification.calls;
  }
  void await() const {
    while (calls == 0) sleep_briefly();
  }
};

TEST_F(StreamWork, PositionsCountQueuedAndCompletedWork) {
  const std::uint64_t before = queued();
  ASSERT_EQ(hcclEmulationLaunch(stream_, wait_for_flag, &open_), hcclSuccess);
  ASSERT_EQ(hcclEmulationLaunch(stream_, do_nothing, nullptr), hcclSuccess);
  std::uint64_t position = 0;
  std::uint64_t completed = 99;
  EXPECT_EQ(hcclEmulationStreamPosition(stream_, &position, &completed), hcclSuccess);
  EXPECT_EQ(position, before + 2);
  EXPECT_EQ(completed, before);
  open_ = true;
  EXPECT_EQ(wait(before, position), hcclSuccess);
  EXPECT_EQ(hcclEmulationStreamPosition(stream_, nullptr, &completed), hcclSuccess);
  EXPECT_EQ(completed, position);
  EXPECT_EQ(hcclEmulationStreamPosition(stream_, nullptr, nullptr), hcclSuccess);
}

TEST_F(StreamWork, IsBusyUntilItCompletes) {
  ASSERT_EQ(hcclEmulationLaunch(stream_, wait_for_flag, &open_), hcclSuccess);
  const std::uint64_t position = queued();
  for (const std::uint64_t timeout : {0ull, 1ull, 20ull}) {
    EXPECT_EQ(wait(0, position, timeout), hcclBusy);
    EXPECT_EQ(hcclGetLastErrorMessage(), nullptr) << "hcclBusy is an answer, not a failure";
  }
  open_ = true;
  EXPECT_EQ(wait(0, position, HCCL_EMULATION_NO_TIMEOUT - 1), hcclSuccess);
  EXPECT_EQ(wait(0, position, 0), hcclSuccess);
}

TEST_F(StreamWork, StartsWhenPolled) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(hcclEmulationLaunch(stream_, do_nothing, nullptr), hcclSuccess);
    const std::uint64_t position = queued();
    hcclResult_t result = hcclBusy;
    while (result == hcclBusy) {
      result = wait(position - 1, position, 0);
      sleep_briefly();
    }
    EXPECT_EQ(result, hcclSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 2 == 0 ? 0 : 15));
  }
}

TEST_F(StreamWork, FailsWithItsOwnTextOnly) {
  ASSERT_EQ(hcclEmulationLaunch(stream_, do_nothing, nullptr), hcclSuccess);
  const std::uint64_t before = queued();
  queue_failing_copy();
  const std::uint64_t failed = queued();
  for (const std::uint64_t timeout : {HCCL_EMULATION_NO_TIMEOUT, std::uint64_t{1000}}) {
    EXPECT_EQ(wait(before, failed, timeout), hcclInvalidArgument);
    ASSERT_NE(hcclGetLastErrorMessage(), nullptr);
    EXPECT_NE(std::strstr(hcclGetLastErrorMessage(), "copy from the host"), nullptr)
        << hcclGetLastErrorMessage();
  }
  EXPECT_EQ(wait(0, before), hcclSuccess);
  EXPECT_EQ(synStreamSynchronize(stream_), synSuccess) << "the failure counts as reported";
  ASSERT_EQ(hcclEmulationLaunch(stream_, do_nothing, nullptr), hcclSuccess);
  EXPECT_EQ(wait(failed, queued()), hcclSuccess);
}

TEST_F(StreamWork, NotifiesOnceAndAllowsCallsFromTheCallback) {
  Notification notification;
  notification.stream = stream_;
  ASSERT_EQ(hcclEmulationLaunch(stream_, wait_for_flag, &open_), hcclSuccess);
  const std::uint64_t position = queued();
  ASSERT_EQ(hcclEmulationStreamNotify(stream_, 0, position, Notification::call, &notification),
            hcclSuccess);
  EXPECT_EQ(notification.calls, 0);
  open_ = true;
  notification.await();
  EXPECT_EQ(notification.result, hcclSuccess);
  EXPECT_EQ(notification.message, "");
  EXPECT_EQ(notification.inner, hcclSuccess);
  Notification again;  // for work that has already run
  ASSERT_EQ(hcclEmulationStreamNotify(stream_, 0, position, Notification::call, &again),
            hcclSuccess);
  again.await();
  EXPECT_EQ(again.result, hcclSuccess);
  initialized_ = false;
  EXPECT_EQ(synDestroy(), synSuccess);
  EXPECT_EQ(notification.calls, 1);
  EXPECT_EQ(again.calls, 1);
}

TEST_F(StreamWork, NotifiesOfAFailure) {
  queue_failing_copy();
  Notification notification;
  ASSERT_EQ(hcclEmulationStreamNotify(stream_, 0, queued(), Notification::call, &notification),
            hcclSuccess);
  notification.await();
  EXPECT_EQ(notification.result, hcclInvalidArgument);
  EXPECT_NE(notification.message.find("copy from the host"), std::string::npos)
      << notification.message;
  EXPECT_EQ(synStreamSynchronize(stream_), synSuccess) << "the failure counts as reported";
}

TEST_F(StreamWork, NotifiesBeforeTheRuntimeIsDestroyed) {
  constexpr int kCalls = 100;
  std::vector<Notification> notifications(kCalls);
  ASSERT_EQ(hcclEmulationLaunch(stream_, wait_for_flag, &open_), hcclSuccess);
  for (Notification& one : notifications) {
    ASSERT_EQ(hcclEmulationLaunch(stream_, do_nothing, nullptr), hcclSuccess);
    ASSERT_EQ(hcclEmulationStreamNotify(stream_, 0, queued(), Notification::call, &one),
              hcclSuccess);
  }
  open_ = true;
  ASSERT_EQ(synStreamDestroy(stream_), synSuccess);
  initialized_ = false;
  ASSERT_EQ(synDestroy(), synSuccess);
  for (const Notification& one : notifications) {
    EXPECT_EQ(one.calls, 1);
    EXPECT_EQ(one.result, hcclSuccess);
  }
}

// In a forked process, which has no callback thread, calls must be refused and exit must not hang.
TEST_F(StreamWork, DoesNotHangAtExit) {
  Notification notification;
  ASSERT_EQ(hcclEmulationStreamNotify(stream_, 0, 0, Notification::call, &notification),
            hcclSuccess);
  notification.await();
  const int status = hccl::test::status_in_child([&]() -> int {
    const bool refused = wait(0, 0) == hcclInvalidUsage &&
                         hcclEmulationStreamNotify(stream_, 0, 0, Notification::call,
                                                   &notification) == hcclInvalidUsage;
    std::exit(refused && notification.calls == 1 ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
}

TEST_F(StreamWork, RefusesInvalidRanges) {
  const std::uint64_t position = queued();
  const auto expect_refused = [](hcclResult_t result, const char* part) {
    EXPECT_EQ(result, hcclInvalidArgument) << part;
    ASSERT_NE(hcclGetLastErrorMessage(), nullptr);
    EXPECT_NE(std::strstr(hcclGetLastErrorMessage(), part), nullptr) << hcclGetLastErrorMessage();
  };
  Notification notification;
  expect_refused(wait(0, position + 1), "up_to is");
  expect_refused(wait(position + 1, position), "after is");
  expect_refused(hcclEmulationStreamWait(nullptr, 0, 0, 0), "unknown stream");
  expect_refused(hcclEmulationStreamPosition(nullptr, nullptr, nullptr), "unknown stream");
  expect_refused(hcclEmulationStreamNotify(nullptr, 0, 0, Notification::call, &notification),
                 "unknown stream");
  expect_refused(
      hcclEmulationStreamNotify(stream_, 0, position + 1, Notification::call, &notification),
      "up_to is");
  expect_refused(hcclEmulationStreamNotify(stream_, 0, 0, nullptr, &notification),
                 "callback is null");
  expect_refused(hcclEmulationSetTimeout(nullptr, 1), "unknown communicator");
  EXPECT_EQ(notification.calls, 0);
}

TEST_F(StreamWork, HasATimeLimitWithOneRank) {
  hcclUniqueId id{};
  ASSERT_EQ(hcclGetUniqueId(&id), hcclSuccess);
  hcclComm_t comm = nullptr;
  ASSERT_EQ(hcclCommInitRank(&comm, 1, id, 0), hcclSuccess);
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{1000}, UINT64_MAX})
    EXPECT_EQ(hcclEmulationSetTimeout(comm, limit), hcclSuccess);
  EXPECT_EQ(hcclCommDestroy(comm), hcclSuccess);
}

}  // namespace
