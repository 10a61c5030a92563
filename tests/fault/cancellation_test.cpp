// SPDX-License-Identifier: Apache-2.0
// Tests pthread_cancel in every arrangement. A cancelled thread must complete its call into the
// library, and the communicator must remain usable.
#include "arrangements.h"
#include "faults.h"
#include "rank_test.h"

#include <atomic>

#include <gtest/gtest.h>
#include <hccl_emulation.h>
#include <pthread.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// A thread that cancels itself and then runs its body. A cancellation point in the body would end
// the thread there.
class CancelledThread {
 public:
  explicit CancelledThread(std::function<void()> body) : body_(std::move(body)) {
    require(pthread_create(&thread_, nullptr, &CancelledThread::run, this) == 0, "a thread");
  }
  CancelledThread(const CancelledThread&) = delete;
  CancelledThread& operator=(const CancelledThread&) = delete;
  ~CancelledThread() = default;

  // Joins the thread. Requires that the thread ran its whole body before it was cancelled.
  void expect_cancelled() {
    void* result = nullptr;
    require(pthread_join(thread_, &result) == 0, "joining");
    require(failure_.empty(), failure_);
    require(ended_, "the thread was cancelled within the library");
    require(result == PTHREAD_CANCELED, "the thread was not cancelled");
  }

 private:
  static void* run(void* self) {
    auto& thread = *static_cast<CancelledThread*>(self);
    pthread_cancel(pthread_self());  // stays pending until a cancellation point
    try {
      thread.body_();
    } catch (const Failure& failure) {
      thread.failure_ = failure.what();
      return nullptr;
    }
    thread.ended_ = true;
    pthread_testcancel();
    return nullptr;
  }

  const std::function<void()> body_;
  pthread_t thread_{};
  std::string failure_;
  std::atomic<bool> ended_{false};
};

class Cancelled : public EveryArrangement {};

RANK_BODY(wait_cancelled) {
  synEventHandle event = session.make_event();
  std::int64_t calls = 0;
  for (const std::size_t count : {4U, 300'000U}) {
    for (const Placement placement : {Placement::device, Placement::host}) {
      Operation operation = all_reduce_of(count);
      operation.placement = placement;
      OperationRun run(session, group, operation);
      // Rank 1 queues its call after rank 0, so that rank 0 has to wait.
      ++calls;
      if (world.rank == 1) world.board->await(0, calls);
      CancelledThread thread([&] {
        succeed(run.queue(stream));
        succeed(synEventRecord(event, stream));
        if (world.rank == 0) ++world.board->counter(0);
        succeed(synEventSynchronize(event));
        succeed(synStreamSynchronize(stream));
      });
      thread.expect_cancelled();
      run.verify();
    }
  }
}

TEST_P(Cancelled, WaitsCompleteFirst) { run(in_session(wait_cancelled)); }

TEST_P(Cancelled, CommunicatorCallsCompleteFirst) {
  run([](World& world) {
    Session session(world);
    const hcclUniqueId id = share_id(world);
    hcclComm_t communicator = nullptr;
    CancelledThread life([&] {
      const DeviceMemory memory(session.device(), 4096);
      synStreamHandle stream = nullptr;
      succeed(synStreamCreateGeneric(&stream, session.device(), 0));
      succeed(hcclCommInitRank(&communicator, 2, id, world.rank));
      void* const buffer = memory.pointer();
      succeed(hcclAllReduce(buffer, buffer, 1'000, hcclFloat32, hcclSum, communicator, stream));
      succeed(synDeviceSynchronize(session.device()));
      succeed(hcclCommFinalize(communicator));
      succeed(hcclCommDestroy(communicator));
      succeed(synStreamDestroy(stream));
    });
    life.expect_cancelled();
    session.finish();
  });
}

// With HCCL_BLOCKING=1, each call waits for its own work in system calls that are cancellation
// points.
RANK_TEST(CancelledUnderBlocking, CallsCompleteFirst, 2,
          RankOptions{.environment = {{"HCCL_BLOCKING", "1"}}}) {
  constexpr std::size_t kCount = 300'000;
  const DeviceMemory memory(session.device(), kCount * sizeof(float));
  std::vector<float> host(kCount, 1.0F);
  void* const buffer = memory.pointer();
  const std::vector<std::function<void()>> calls{
      [&] {
        succeed(synMemCopyAsync(stream, host_address(host.data()), memory.size(), memory.address(),
                                HOST_TO_DRAM));
      },
      [&] {
        succeed(hcclAllReduce(buffer, buffer, kCount, hcclFloat32, hcclSum, group.handle, stream));
      },
      [&] {
        succeed(hcclAllReduce(host.data(), host.data(), kCount, hcclFloat32, hcclSum, group.handle,
                              stream));
      },
      [&] {
        succeed(hcclEmulationLaunch(
            stream, [](void*) { usleep(1); }, nullptr));
      },
  };
  for (const auto& call : calls) CancelledThread(call).expect_cancelled();
  require(host == std::vector<float>(kCount, 2.0F), "the sum");
}

INSTANTIATE_TEST_SUITE_P(Arrangements, Cancelled, testing::ValuesIn(every_arrangement()),
                         arrangement_name);

}  // namespace
}  // namespace hccl::test
