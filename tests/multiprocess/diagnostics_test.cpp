// SPDX-License-Identifier: Apache-2.0
// Tests what HCCL_EXPLAIN and HCCL_DEBUG print about a program's calls. Also tests HCCL_BLOCKING,
// with which a call waits for its work and returns its error.
#include "rank_test.h"
#include "session.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <hccl_emulation.h>

namespace hccl::test {
namespace {

constexpr int kTwoRanks = 2;
constexpr std::size_t kSmall = 2;     // floats: 8 bytes
constexpr std::size_t kLarge = 4096;  // 16 KiB

RankOptions with(const char* name, const char* value) {
  return {.environment = {{name, value}}, .capture_stderr = true};
}

int code(hcclResult_t result) { return static_cast<int>(result); }
int code(synStatus status) { return static_cast<int>(status); }

void all_reduce(const Group& group, synStreamHandle stream, std::uint64_t address,
                std::size_t count) {
  void* const data = device_pointer(address);
  succeed(hcclAllReduce(data, data, count, hcclFloat32, hcclSum, group.handle, stream));
}

// Runs small and large all-reduces on device and host memory. Rank 0 also sends rank 1 a message.
RANK_BODY(calls_of_all_kinds) {
  const DeviceMemory memory(session.device(), kLarge * sizeof(float));
  std::vector<float> host(kLarge);
  for (int round = 0; round < 3; ++round) {
    all_reduce(group, stream, memory.address(), kSmall);
    all_reduce(group, stream, memory.address(), kLarge);
    all_reduce(group, stream, host_address(host.data()), kSmall);
    all_reduce(group, stream, host_address(host.data()), kLarge);
  }
  void* const data = memory.pointer();
  if (group.rank == 0) succeed(hcclSend(data, kSmall, hcclFloat32, 1, group.handle, stream));
  if (group.rank == 1) succeed(hcclRecv(data, kSmall, hcclFloat32, 0, group.handle, stream));
  succeed(synStreamSynchronize(stream));
}

TEST(Explain, LogsThePathOfEachKindOfCallOncePerNode) {
  const auto outcomes =
      run_ranks(kTwoRanks, in_session(calls_of_all_kinds), with("HCCL_EXPLAIN", "1"));
  EXPECT_EQ(failures(outcomes), "");
  const std::string& printed = outcomes[0].stderr_text;
  for (const char* line : {"all_reduce of 8 to 15 B in device memory: eager, because ",
                           "all_reduce of 16384 to 32767 B in device memory: cooperative, because ",
                           "all_reduce of 8 to 15 B in host memory: eager, because ",
                           "all_reduce of 16384 to 32767 B in host memory: host staging, because ",
                           "point_to_point of 8 to 15 B in device memory: mailbox, because "})
    EXPECT_EQ(count_of(printed, line), 1U) << line << "\n" << printed;
  EXPECT_EQ(count_of(outcomes[1].stderr_text, "explain:"), 0U) << outcomes[1].stderr_text;
}

TEST(Explain, LogsTheAlgorithmAndItsReason) {
  RankOptions options = with("HCCL_EXPLAIN", "1");
  options.environment.emplace_back("HCCL_TRANSPORT", "shm");
  const auto planned = run_ranks(kTwoRanks, in_session(calls_of_all_kinds), options);
  EXPECT_EQ(failures(planned), "");
  EXPECT_TRUE(
      contains(planned[0].stderr_text,
               "schedule one_shot over shm, 1 channel, because the table selects one_shot up to "
               "16384 B"))
      << planned[0].stderr_text;
  options.environment.emplace_back("HCCL_ALGO", "ring");
  const auto forced = run_ranks(kTwoRanks, in_session(calls_of_all_kinds), options);
  EXPECT_TRUE(contains(forced[0].stderr_text,
                       "schedule ring over shm, 1 channel, because HCCL_ALGO=ring forces it"))
      << forced[0].stderr_text;
}

TEST(LogLevels, DebugLogsPathsOnEveryRankButNoOperations) {
  const auto outcomes =
      run_ranks(kTwoRanks, in_session(calls_of_all_kinds), with("HCCL_DEBUG", "DEBUG"));
  EXPECT_EQ(failures(outcomes), "");
  for (const RankOutcome& outcome : outcomes) {
    EXPECT_TRUE(contains(outcome.stderr_text, "plan: ")) << outcome.stderr_text;
    EXPECT_FALSE(contains(outcome.stderr_text, "TRACE")) << outcome.stderr_text;
  }
}

TEST(LogLevels, TraceLogsQueueStartAndEndOfEachOperation) {
  const auto outcomes =
      run_ranks(kTwoRanks, in_session(calls_of_all_kinds), with("HCCL_DEBUG", "TRACE"));
  EXPECT_EQ(failures(outcomes), "");
  const std::string& printed = outcomes[1].stderr_text;
  EXPECT_EQ(count_of(printed, "rank 1: queued all_reduce(2, float, sum), 8 B, as work "), 6U)
      << printed;
  EXPECT_EQ(count_of(printed, "rank 1: started all_reduce(2, float, sum), work "), 6U) << printed;
  EXPECT_EQ(count_of(printed, "rank 1: ended all_reduce(2, float, sum), work "), 6U) << printed;
  EXPECT_EQ(count_of(printed, "rank 1: ended all_reduce(4096, float, sum), work "), 6U) << printed;
  EXPECT_EQ(count_of(printed, "rank 1: ended recv(2, float) from rank 0, work "), 1U) << printed;
}

// Queues a copy that fails when it runs, because its host address is not mapped.
RANK_BODY(failing_copy) {
  const DeviceMemory memory(session.device(), 64);
  const synStatus returned = synMemCopyAsync(stream, memory.address(), 64, 16, DRAM_TO_HOST);
  world.report(join(code(returned), ' ', synGetLastErrorMessage()));
  world.report(join(code(synStreamSynchronize(stream)), ' ', synGetLastErrorMessage()));
}

TEST(Blocking, AFailingCopyFailsTheCallThatQueuedIt) {
  const auto queued = run_ranks(1, in_session(failing_copy));
  EXPECT_EQ(failures(queued), "");
  EXPECT_EQ(queued[0].reports[0], "0 ");
  EXPECT_EQ(queued[0].reports[1].find(
                "26 a copy or memset failed, and the work queued after it did not run"),
            0U);
  const auto waited = run_ranks(1, in_session(failing_copy), with("HCCL_BLOCKING", "1"));
  EXPECT_EQ(failures(waited), "");
  EXPECT_EQ(waited[0].reports[0].find(
                "26 a copy or memset failed, and the work queued after it did not run"),
            0U)
      << waited[0].reports[0];
  EXPECT_EQ(waited[0].reports[1], "0 ") << "a failure is reported once";
}

RANK_BODY(calls_that_share_a_body) {
  synStreamHandle refused = nullptr;
  require(synStreamCreate(&refused, 77, synStreamType{}, 0) == synInvalidArgument, "creating");
  require(synDeviceGetCount(nullptr) == synInvalidArgument, "counting");
}

TEST(FailedCalls, AreLoggedUnderTheNameThatTheProgramCalled) {
  const auto outcomes =
      run_ranks(1, in_session(calls_that_share_a_body), with("HCCL_DEBUG", "INFO"));
  EXPECT_EQ(failures(outcomes), "");
  for (const char* name : {"synStreamCreate failed: ", "synDeviceGetCount failed: "})
    EXPECT_TRUE(contains(outcomes[0].stderr_text, name)) << outcomes[0].stderr_text;
}

RANK_BODY(many_failing_copies) {
  const DeviceMemory memory(session.device(), 64);
  for (int copy = 0; copy < 300; ++copy) {
    succeed(synMemCopyAsync(stream, memory.address(), 64, 16, DRAM_TO_HOST));
    require(synStreamSynchronize(stream) == synFail, "synchronising");
  }
}

TEST(FailedCalls, InALoopAreLoggedInFewLines) {
  const RankOptions options{.capture_stderr = true};
  const auto outcomes = run_ranks(1, in_session(many_failing_copies), options);
  EXPECT_EQ(failures(outcomes), "");
  const std::string& printed = outcomes[0].stderr_text;
  EXPECT_TRUE(contains(printed, "copy to the host failed: hcclInvalidArgument (7): ")) << printed;
  EXPECT_LT(count_of(printed, "\n"), 30U) << printed;
}

// Calls an all-reduce with a different count on each rank.
void mismatched_all_reduces(World& world) {
  Session session(world);
  const Group group = session.join_all();
  synStreamHandle stream = session.make_stream();
  const DeviceMemory memory(session.device(), kLarge * sizeof(float));
  void* const data = memory.pointer();
  const std::size_t count = kSmall + static_cast<std::size_t>(group.rank);
  const hcclResult_t returned =
      hcclAllReduce(data, data, count, hcclFloat32, hcclSum, group.handle, stream);
  world.report(join(code(returned), ' ', returned == hcclSuccess ? "" : last_hccl_message()));
}

TEST(Blocking, AMismatchFailsTheMismatchedCall) {
  const auto outcomes = run_ranks(kTwoRanks, mismatched_all_reduces, with("HCCL_BLOCKING", "1"));
  EXPECT_EQ(failures(outcomes), "");
  for (const RankOutcome& outcome : outcomes) {
    ASSERT_EQ(outcome.reports.size(), 1U);
    EXPECT_EQ(outcome.reports[0].find("8 op 0 of stream 0: rank 1 all_reduce(3, float, sum)"), 0U)
        << outcome.reports[0];
  }
}

// With HCCL_BLOCKING=1, only the end of a group may block: both ranks send before they receive, so
// a send that blocks would deadlock.
RANK_TEST(Blocking, AGroupWaitsAtItsEnd, kTwoRanks, with("HCCL_BLOCKING", "1")) {
  const DeviceMemory memory(session.device(), 2 * kLarge * sizeof(float));
  void* const from = memory.pointer();
  void* const to = device_pointer(memory.address() + kLarge * sizeof(float));
  const int peer = 1 - group.rank;
  succeed(hcclGroupStart());
  succeed(hcclSend(from, kLarge, hcclFloat32, peer, group.handle, stream));
  succeed(hcclRecv(to, kLarge, hcclFloat32, peer, group.handle, stream));
  require(synStreamQuery(stream) == synSuccess, "nothing is queued before the group's end");
  succeed(hcclGroupEnd());
  require(synStreamQuery(stream) == synSuccess, "the group's end has waited");
}

// If a rank sends to itself without a matching receive in the group, hcclGroupEnd must fail, but
// must still wait for the group's other calls.
RANK_TEST(Blocking, AFailedGroupWaitsForItsQueuedCalls, kTwoRanks, with("HCCL_BLOCKING", "1")) {
  constexpr std::size_t kCount = std::size_t{4} << 20;
  const DeviceMemory memory(session.device(), kCount * sizeof(float));
  void* const data = memory.pointer();
  // Make rank 0 wait for rank 1.
  if (group.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  succeed(hcclGroupStart());
  all_reduce(group, stream, memory.address(), kCount);
  succeed(hcclSend(data, kSmall, hcclFloat32, group.rank, group.handle, stream));
  require_equal(code(hcclGroupEnd()), code(hcclInternalError), "the send");
  require(contains(last_hccl_message(), "sends to itself"), last_hccl_message());
  require(synStreamQuery(stream) == synSuccess, "the group's end has waited for the rest");
}

// If the last copy of a call is refused, the call must wait for the earlier copies.
RANK_TEST(Blocking, CopiesBeforeARefusedCopyComplete, 1, with("HCCL_BLOCKING", "1")) {
  std::vector<std::byte> host(std::size_t{32} << 20);
  const DeviceMemory memory(session.device(), host.size());
  const std::vector<std::uint64_t> from(3, host_address(host.data()));
  const std::vector<std::uint64_t> to{memory.address(), memory.address(), 16};
  const std::vector<std::uint64_t> sizes(3, host.size());
  const synStatus returned = synMemCopyAsyncMultiple(stream, from.data(), sizes.data(), to.data(),
                                                     HOST_TO_DRAM, from.size());
  require_equal(code(returned), code(synInvalidArgument), "the last copy");
  require(synStreamQuery(stream) == synSuccess, "the call has waited for the earlier copies");
}

// Twice queues failing work without HCCL_BLOCKING, and then launches a kernel with HCCL_BLOCKING=1.
RANK_BODY(kernels_after_failures) {
  const DeviceMemory memory(session.device(), 64);
  const auto report_launch = [&] {
    succeed(synConfigurationSet("HCCL_BLOCKING", "1"));
    const hcclResult_t returned = hcclEmulationLaunch(
        stream, [](void*) {}, nullptr);
    world.report(join(code(returned), ' ', returned == hcclSuccess ? "" : last_hccl_message()));
    succeed(synConfigurationSet("HCCL_BLOCKING", "0"));
  };
  succeed(synMemCopyAsync(stream, memory.address(), 64, 16, DRAM_TO_HOST));
  report_launch();
  all_reduce(group, stream, memory.address(), kSmall + static_cast<std::size_t>(group.rank));
  report_launch();
}

TEST(Blocking, AKernelReturnsTheCodeOfAnEarlierFailure) {
  const auto outcomes = run_ranks(kTwoRanks, in_session(kernels_after_failures));
  EXPECT_EQ(failures(outcomes), "");
  for (const RankOutcome& outcome : outcomes) {
    ASSERT_EQ(outcome.reports.size(), 2U);
    EXPECT_EQ(outcome.reports[0].find(join(code(hcclStreamError), " work on the stream failed: ")),
              0U)
        << outcome.reports[0];
    EXPECT_EQ(outcome.reports[1].find(join(code(hcclInvalidUsage), " op 0 of stream 0: ")), 0U)
        << outcome.reports[1];
  }
}

RANK_BODY(fails) {
  const synStatus unknown = synStreamSynchronize(nullptr);
  require_equal(code(unknown), code(synInvalidArgument), "status");
}

TEST(LogLevels, NoneSilencesFailedCalls) {
  const auto loud = run_ranks(1, in_session(fails), with("HCCL_DEBUG", "WARN"));
  EXPECT_TRUE(
      contains(loud[0].stderr_text, "synStreamSynchronize failed: synInvalidArgument (1): "))
      << loud[0].stderr_text;
  for (const auto& [name, value] : {std::pair{"HCCL_DEBUG", "NONE"}, {"LOG_LEVEL_HCL", "6"}}) {
    const auto outcomes = run_ranks(1, in_session(fails), with(name, value));
    EXPECT_EQ(failures(outcomes), "");
    EXPECT_EQ(outcomes[0].stderr_text, "");
  }
}

}  // namespace
}  // namespace hccl::test
