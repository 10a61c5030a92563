// SPDX-License-Identifier: Apache-2.0
// Calls at the end of a program: after synDestroy, and from static destructors, with everything
// left as it is.
#include "faults.h"
#include "rank_test.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// The objects that the destructor of a global may still hold.
struct Remains {
  hcclComm_t communicator = nullptr;
  synStreamHandle stream = nullptr;
  synDeviceId device = 0;
  std::uint64_t memory = 0;
  bool destroyed = false;  // the runtime, before

  // Ends the process with a status of its own if a call answers what it must not.
  void expect(bool right) const {
    if (!right) _exit(99);
  }
  ~Remains() {
    if (communicator == nullptr) return;
    int count = 0;
    void* const buffer = device_pointer(memory);
    const hcclResult_t reduced =
        hcclAllReduce(buffer, buffer, 4, hcclFloat32, hcclSum, communicator, stream);
    const synStatus waited = synStreamSynchronize(stream);
    std::uint64_t more = 0;
    const synStatus allocated = synDeviceMalloc(device, 64, 0, 0, &more);
    if (destroyed) {
      expect(reduced != hcclSuccess && hcclGetLastErrorMessage() != nullptr);
      expect(waited == synUninitialized && allocated == synUninitialized);
    } else {
      expect(reduced == hcclSuccess && waited == synSuccess && allocated == synSuccess);
      expect(hcclCommCount(communicator, &count) == hcclSuccess && count == 1);
      expect(synStreamDestroy(stream) == synSuccess);
    }
    expect(hcclCommDestroy(communicator) == hcclSuccess);
    expect(hcclCommDestroy(communicator) == hcclInvalidArgument);
    expect(synDestroy() == (destroyed ? synUninitialized : synSuccess));
    expect(synDestroy() == synUninitialized);
  }
};

RankFunction leaves_everything(bool destroys_the_runtime) {
  return [=](World&) {
    static Remains remains;
    succeed(synInitialize());
    succeed(synDeviceAcquire(&remains.device, nullptr));
    succeed(synStreamCreateGeneric(&remains.stream, remains.device, 0));
    succeed(synDeviceMalloc(remains.device, 64, 0, 0, &remains.memory));
    hcclUniqueId id{};
    succeed(hcclGetUniqueId(&id));
    succeed(hcclCommInitRank(&remains.communicator, 1, id, 0));
    remains.destroyed = destroys_the_runtime;
    if (destroys_the_runtime) succeed(synDestroy());
  };
}

TEST(StaticDestructors, MayCall) {
  EXPECT_EQ(failures(run_ranks(1, leaves_everything(false))), "");
}

TEST(StaticDestructors, MayCallAfterTheRuntimeIsDestroyed) {
  EXPECT_EQ(failures(run_ranks(1, leaves_everything(true))), "");
}

// Returns from main in the middle of everything, like a program that failed.
RANK_BODY(returns_early) {
  const DeviceMemory memory(session.device(), 4 << 20);
  void* const buffer = memory.pointer();
  for (int call = 0; call < 20; ++call)
    succeed(hcclAllReduce(buffer, buffer, 1 << 20, hcclFloat32, hcclMax, group.handle, stream));
  std::exit(0);
}

TEST(Exit, WithWorkInFlightEndsEveryRank) {
  for (const RankOutcome& outcome : run_ranks(3, in_session(returns_early)))
    EXPECT_EQ(outcome.signal, 0);
}

// The last rank destroys the communicator while the others call once more.
RANK_TEST(Exit, OfARankThatOthersStillNeedIsNamed, 3) {
  const DeviceMemory memory(session.device(), 4 << 20);
  void* const buffer = memory.pointer();
  const auto reduce = [&] {
    return hcclAllReduce(buffer, buffer, 1 << 20, hcclFloat32, hcclMax, group.handle, stream);
  };
  succeed(reduce());
  succeed(synStreamSynchronize(stream));
  const int last = group.size() - 1;
  if (group.rank == last) return;
  // Refused at once where another rank was the first to notice.
  if (reduce() == hcclSuccess) {
    expect_code(synStreamSynchronize(stream), synFailHccl);
  }
  const std::string message = hcclCommGetAsyncErrorMessage(group.handle);
  require(names_rank(message, last) && contains(message, "has destroyed the communicator"),
          message);
}

}  // namespace
}  // namespace hccl::test
