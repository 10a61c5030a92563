// SPDX-License-Identifier: Apache-2.0
// Tests program exit: calls from static destructors, before and after synDestroy, and exits with
// calls in flight.
#include "faults.h"
#include "rank_test.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// Objects that are still open at exit. The destructor makes calls that use them.
struct Leftovers {
  hcclComm_t communicator = nullptr;
  synStreamHandle stream = nullptr;
  synDeviceId device = 0;
  std::uint64_t memory = 0;
  bool destroyed = false;  // whether synDestroy was called before exit

  // Exits with status 99 unless `right`.
  void expect(bool right) const {
    if (!right) _exit(99);
  }
  ~Leftovers() {
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

RankFunction exits_with_resources(bool destroys_the_runtime) {
  return [=](World&) {
    static Leftovers leftovers;
    succeed(synInitialize());
    succeed(synDeviceAcquire(&leftovers.device, nullptr));
    succeed(synStreamCreateGeneric(&leftovers.stream, leftovers.device, 0));
    succeed(synDeviceMalloc(leftovers.device, 64, 0, 0, &leftovers.memory));
    hcclUniqueId id{};
    succeed(hcclGetUniqueId(&id));
    succeed(hcclCommInitRank(&leftovers.communicator, 1, id, 0));
    leftovers.destroyed = destroys_the_runtime;
    if (destroys_the_runtime) succeed(synDestroy());
  };
}

TEST(StaticDestructors, MayCallTheLibrary) {
  EXPECT_EQ(failures(run_ranks(1, exits_with_resources(false))), "");
}

TEST(StaticDestructors, MayCallTheLibraryAfterTheRuntimeIsDestroyed) {
  EXPECT_EQ(failures(run_ranks(1, exits_with_resources(true))), "");
}

// Exits while up to 20 calls are in flight, like a program that failed.
RANK_BODY(exits_early) {
  const DeviceMemory memory(session.device(), 4 << 20);
  void* const buffer = memory.pointer();
  for (int call = 0; call < 20; ++call)
    succeed(hcclAllReduce(buffer, buffer, 1 << 20, hcclFloat32, hcclMax, group.handle, stream));
  std::exit(0);
}

TEST(Exit, WithWorkInFlightEndsEveryRank) {
  for (const RankOutcome& outcome : run_ranks(3, in_session(exits_early)))
    EXPECT_EQ(outcome.signal, 0);
}

// If the last rank destroys the communicator while the other ranks make another call, the error on
// those ranks must name the last rank.
RANK_TEST(Exit, ErrorNamesARankThatLeftEarly, 3) {
  const DeviceMemory memory(session.device(), 4 << 20);
  void* const buffer = memory.pointer();
  const auto reduce = [&] {
    return hcclAllReduce(buffer, buffer, 1 << 20, hcclFloat32, hcclMax, group.handle, stream);
  };
  succeed(reduce());
  succeed(synStreamSynchronize(stream));
  const int last = group.size() - 1;
  if (group.rank == last) return;
  // The call itself fails if another rank has already reported that the last rank left.
  if (reduce() == hcclSuccess) {
    expect_code(synStreamSynchronize(stream), synFailHccl);
  }
  const std::string message = hcclCommGetAsyncErrorMessage(group.handle);
  require(names_rank(message, last) && contains(message, "has destroyed the communicator"),
          message);
}

}  // namespace
}  // namespace hccl::test
