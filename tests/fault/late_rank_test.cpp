// SPDX-License-Identifier: Apache-2.0
// Tests calls that one rank delays. On several nodes, the ranks of a call wait for each other in
// shared memory and over connections. The error on every rank must name the rank at fault, even on
// a rank that does not wait for it directly.
#include "faults.h"
#include "rank_test.h"

#include <csignal>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr int kRanks = 4;

RankOptions impatient() { return with_environment({{"HCCL_TIMEOUT", short_timeout()}}); }

// Returns a rank function in which every rank except `late` calls `operation`. The operation must
// fail with an error that names `late`, and must leave all buffers unchanged.
RankFunction with_a_late_rank(const Operation& operation, int late) {
  return in_session(
      [=](World& world, Session& session, const Group& group, synStreamHandle stream) {
        OperationRun run(session, group, operation);
        if (world.rank != late) {
          succeed(run.queue(stream));
          expect_code(synStreamSynchronize(stream), synFailHccl);
          run.verify_untouched();
        } else {
          await_async_error(group);
        }
        expect_failed(group, hcclSystemError, late);
        if (world.rank != late) {
          const std::string text = async_message(group.handle);
          require(contains(text, "HCCL_TIMEOUT"), text);
        }
      });
}

class LateRank : public testing::TestWithParam<int> {};

TEST_P(LateRank, IsNamedByAllRanks) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather}) {
    for (const std::size_t count : {std::size_t{8}, std::size_t{1'000'000}}) {
      const Operation operation = make_operation(collective, count);
      EXPECT_EQ(failures(run_ranks(kRanks, with_a_late_rank(operation, GetParam()), impatient())),
                "")
          << describe(operation);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LateRank, testing::Values(0, 1, 2, 3));

// A rank that has left the communicator must be named at once, without a time-out.
TEST(DepartedRank, IsNamedByAllRanks) {
  for (int gone = 0; gone < kRanks; ++gone) {
    const auto ranks =
        in_session([=](World& world, Session& session, const Group& group, synStreamHandle stream) {
          const DeviceMemory memory(session.device(), 4096);
          if (world.rank == gone) {
            session.forget_communicators();
            succeed(hcclCommDestroy(group.handle));
            return;
          }
          const hcclResult_t queued = hcclAllReduce(memory.pointer(), memory.pointer(), 16,
                                                    hcclFloat32, hcclSum, group.handle, stream);
          require(queued == hcclSuccess || queued == hcclSystemError, join("queued: ", queued));
          static_cast<void>(synStreamSynchronize(stream));
          expect_failed(group, hcclSystemError, gone);
          const std::string text = async_message(group.handle);
          require(contains(text, "has destroyed the communicator"), text);
        });
    EXPECT_EQ(failures(run_ranks(kRanks, ranks)), "") << "rank " << gone;
  }
}

// A stopped rank must be named although it neither leaves nor answers.
TEST(StoppedRank, IsNamedByAllRanks) {
  for (int stopped = 0; stopped < kRanks; ++stopped) {
    const auto ranks =
        in_session([=](World& world, Session& session, const Group& group, synStreamHandle stream) {
          const DeviceMemory memory(session.device(), kMiB);
          const auto reduce = [&] {
            return hcclAllReduce(memory.pointer(), memory.pointer(), kMiB / 4, hcclFloat32, hcclSum,
                                 group.handle, stream);
          };
          succeed(reduce());
          succeed(synStreamSynchronize(stream));
          world.board->counter(world.rank).store(getpid());
          world.board->barrier(0, world.size);
          const auto pid = static_cast<pid_t>(world.board->counter(stopped).load());
          if (world.rank == (stopped + 1) % kRanks) kill(pid, SIGSTOP);
          if (world.rank != stopped) {
            static_cast<void>(reduce());
            expect_code(synStreamSynchronize(stream), synFailHccl);
            expect_failed(group, hcclSystemError, stopped);
            world.board->barrier(1, world.size - 1);
            kill(pid, SIGCONT);
          } else {
            await_async_error(group);
          }
        });
    EXPECT_EQ(failures(run_ranks(kRanks, ranks, impatient())), "") << "rank " << stopped;
  }
}

}  // namespace
}  // namespace hccl::test
