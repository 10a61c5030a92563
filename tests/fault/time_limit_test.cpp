// SPDX-License-Identifier: Apache-2.0
// Tests the time limit that a program sets for one communicator, and the error texts of calls that
// exceed it.
#include "faults.h"
#include "rank_test.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <hccl_emulation.h>

namespace hccl::test {
namespace {

constexpr int kLate = 1;
constexpr std::uint64_t kLimitMs = 1000;

// Returns options that turn HCCL_TIMEOUT off.
RankOptions patient() { return {.environment = {{"HCCL_TIMEOUT", "0"}}, .capture_stderr = true}; }

std::uint64_t queued(synStreamHandle stream) {
  std::uint64_t position = 0;
  succeed(hcclEmulationStreamPosition(stream, &position, nullptr));
  return position;
}

// Requires that `text` names the limit, hcclEmulationSetTimeout, the late rank and `call`.
void require_names_cause(const std::string& text, const std::string& call) {
  for (const std::string& part : {std::string("waited 1 s"), std::string("hcclEmulationSetTimeout"),
                                  join("rank ", kLate, " (pid"), call})
    require(contains(text, part), join("no '", part, "' in: ", text));
}

struct Notification {
  std::atomic<bool> arrived{false};
  hcclResult_t result = hcclSuccess;
  std::string message;

  static void call(hcclResult_t result, const char* message, void* argument) {
    auto& notification = *static_cast<Notification*>(argument);
    notification.result = result;
    notification.message = message;
    notification.arrived = true;
  }
  void await() const {
    while (!arrived) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

// Rank 1 calls nothing on the first communicator. The second communicator, on the same stream, must
// continue.
RANK_BODY(one_call_fails) {
  const Group second = session.join_all(1);
  OperationRun failing(session, group, all_reduce_of(1000));
  OperationRun working(session, second, all_reduce_of(3000, 2));
  const std::uint64_t before = queued(stream);
  std::uint64_t between = before;
  if (world.rank != kLate) {
    succeed(hcclEmulationSetTimeout(group.handle, kLimitMs));
    succeed(failing.queue(stream));
    between = queued(stream);
    expect_code(hcclEmulationStreamWait(stream, before, between, 100), hcclBusy);
  }
  succeed(working.queue(stream));
  const std::uint64_t behind = queued(stream);
  if (world.rank != kLate) {
    Notification failed;
    Notification succeeded;
    succeed(hcclEmulationStreamNotify(stream, between, behind, Notification::call, &succeeded));
    succeed(hcclEmulationStreamNotify(stream, before, between, Notification::call, &failed));
    for (const std::uint64_t timeout : {HCCL_EMULATION_NO_TIMEOUT, std::uint64_t{30'000}}) {
      expect_code(hcclEmulationStreamWait(stream, before, between, timeout), hcclSystemError);
      require_names_cause(hcclGetLastErrorMessage(), "all_reduce(1000");
    }
    failed.await();
    expect_code(failed.result, hcclSystemError);
    require_names_cause(failed.message, "all_reduce(1000");
    succeed(hcclEmulationStreamWait(stream, between, behind, HCCL_EMULATION_NO_TIMEOUT));
    succeeded.await();
    expect_code(succeeded.result, hcclSuccess);
    require_equal(succeeded.message, std::string(), "the message");
    succeed(synStreamSynchronize(stream));
    failing.verify_untouched();
  } else {
    succeed(synStreamSynchronize(stream));
    await_async_error(group);
  }
  working.verify();
  expect_failed(group, hcclSystemError, kLate);
}

TEST(TimeLimit, FailsOnlyItsCommunicatorAndNamesTheLateRank) {
  const auto outcomes = run_ranks(2, in_session(one_call_fails), patient());
  EXPECT_EQ(failures(outcomes), "");
  EXPECT_FALSE(contains(outcomes[0].stderr_text, "hcclBusy")) << outcomes[0].stderr_text;
  EXPECT_EQ(failures(run_ranks_as_threads(2, in_session(one_call_fails), patient())), "");
}

// synEventSynchronize must report that a call exceeded the limit.
RANK_TEST(TimeLimit, IsReportedByEvents, 2, patient()) {
  if (world.rank != kLate) {
    OperationRun run(session, group, all_reduce_of(1000));
    succeed(hcclEmulationSetTimeout(group.handle, kLimitMs));
    synEventHandle event = session.make_event();
    succeed(run.queue(stream));
    succeed(synEventRecord(event, stream));
    expect_code(synEventSynchronize(event), synFailHccl);
    require_names_cause(synGetLastErrorMessage(), "all_reduce(1000");
  } else {
    await_async_error(group);
  }
}

// A receive without a matching send must time out.
RANK_TEST(TimeLimit, EndsReceives, 2, patient()) {
  const DeviceMemory memory(session.device(), 4000);
  if (world.rank != kLate) {
    succeed(hcclEmulationSetTimeout(group.handle, kLimitMs));
    succeed(hcclRecv(memory.pointer(), 1000, hcclFloat32, kLate, group.handle, stream));
    const std::uint64_t position = queued(stream);
    expect_code(hcclEmulationStreamWait(stream, position - 1, position, HCCL_EMULATION_NO_TIMEOUT),
                hcclSystemError);
    require_names_cause(hcclGetLastErrorMessage(), "recv(1000");
  } else {
    await_async_error(group);
  }
}

// The limit set by hcclEmulationSetTimeout must replace HCCL_TIMEOUT, with which this call would
// fail.
RANK_TEST(TimeLimit, OverridesTheEnvironment, 2,
          RankOptions{.environment = {{"HCCL_TIMEOUT", "0.5"}}}) {
  succeed(hcclEmulationSetTimeout(group.handle, 1));
  succeed(hcclEmulationSetTimeout(group.handle, 0));
  OperationRun run(session, group, all_reduce_of(1000));
  if (world.rank == kLate) std::this_thread::sleep_for(std::chrono::seconds(3));
  succeed(run.queue(stream));
  succeed(synStreamSynchronize(stream));
  run.verify();
}

}  // namespace
}  // namespace hccl::test
