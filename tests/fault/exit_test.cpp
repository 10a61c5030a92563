// SPDX-License-Identifier: Apache-2.0
// Tests of calls at the end of a program: after synDestroy, and from static destructors, with all
// objects left open.
#include "faults.h"
#include "rank_test.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// The objects that the destructor of a global may still own. Its destructor makes calls with them.
struct Remains {
  hcclComm_t communicator = nullptr;
  synStreamHandle stream = nullptr;
  synDeviceId device = 0;
  std::uint64_t memory = 0;
  bool destroyed = false;  // whether synDestroy has been called before

  // Ends the process with exit status 99 if a call has returned the wrong result.
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

TEST(StaticDestructors, MayCallTheLibrary) {
  EXPECT_EQ(failures(run_ranks(1, leaves_everything(false))), "");
}

TEST(StaticDestructors, MayCallTheLibraryAfterTheRuntimeIsDestroyed) {
  EXPECT_EQ(failures(run_ranks(1, leaves_everything(true))), "");
}

// Exits with 20 calls in flight, like a program that failed.
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

// When the last rank destroys the communicator while the others make another call, their error must
// name it.
RANK_TEST(Exit, OfANeededRankNamesIt, 3) {
  const DeviceMemory memory(session.device(), 4 << 20);
  void* const buffer = memory.pointer();
  const auto reduce = [&] {
    return hcclAllReduce(buffer, buffer, 1 << 20, hcclFloat32, hcclMax, group.handle, stream);
  };
  succeed(reduce());
  succeed(synStreamSynchronize(stream));
  const int last = group.size() - 1;
  if (group.rank == last) return;
  // The call itself fails if another rank has already reported the departure.
  if (reduce() == hcclSuccess) {
    expect_code(synStreamSynchronize(stream), synFailHccl);
  }
  const std::string message = hcclCommGetAsyncErrorMessage(group.handle);
  require(names_rank(message, last) && contains(message, "has destroyed the communicator"),
          message);
}

}  // namespace
}  // namespace hccl::test
