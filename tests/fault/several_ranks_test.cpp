// SPDX-License-Identifier: Apache-2.0
// Tests nodes with several ranks: calls whose parts are posted ahead of time, host buffers that
// cannot be written, and ranks whose calls differ.
#include "faults.h"
#include "rank_test.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hccl::test {
namespace {

constexpr int kFourRanks = 4;

class PagesOfProgram {
 public:
  explicit PagesOfProgram(std::size_t bytes)
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    require(memory_ != MAP_FAILED, "mmap");
  }
  ~PagesOfProgram() { munmap(memory_, bytes_); }
  PagesOfProgram(const PagesOfProgram&) = delete;
  PagesOfProgram& operator=(const PagesOfProgram&) = delete;

  [[nodiscard]] void* get() const { return memory_; }
  void protect() const { require(mprotect(memory_, bytes_, PROT_READ) == 0, "mprotect"); }

 private:
  std::size_t bytes_;
  void* memory_;
};

// A host buffer that cannot be written must make the call fail, and must not crash the process.
class ReadOnlyReceiveBuffer : public testing::TestWithParam<Collective> {};

hcclResult_t start(Collective collective, const void* from, void* to, std::size_t count,
                   hcclComm_t comm, synStreamHandle stream) {
  switch (collective) {
    case Collective::all_reduce:
      return hcclAllReduce(from, to, count, hcclFloat32, hcclSum, comm, stream);
    case Collective::all_gather:
      return hcclAllGather(from, to, count, hcclFloat32, comm, stream);
    case Collective::reduce_scatter:
      return hcclReduceScatter(from, to, count, hcclFloat32, hcclSum, comm, stream);
    default:
      return hcclAlltoAll(from, to, count * kFourRanks, hcclFloat32, comm, stream);
  }
}

TEST_P(ReadOnlyReceiveBuffer, FailsTheCall) {
  const auto ranks = in_session([](RANK_PARAMETERS) {
    constexpr std::size_t kCount = 400'000;
    const PagesOfProgram from(kCount * kFourRanks * 4);
    const PagesOfProgram to(kCount * kFourRanks * 4);
    if (world.rank == 1) to.protect();
    // Other ranks' calls may complete if rank 1 fails late, or be refused if rank 1 fails early.
    static_cast<void>(start(GetParam(), from.get(), to.get(), kCount, group.handle, stream));
    static_cast<void>(synStreamSynchronize(stream));
    await_async_error(group);
    const std::string text = async_message(group.handle);
    require(contains(text, "rank 1") && contains(text, "receive buffer"), text);
  });
  EXPECT_EQ(failures(run_ranks(kFourRanks, ranks)), "");
}

INSTANTIATE_TEST_SUITE_P(Collectives, ReadOnlyReceiveBuffer,
                         testing::Values(Collective::all_reduce, Collective::all_gather,
                                         Collective::reduce_scatter, Collective::all_to_all),
                         [](const auto& collective) {
                           return std::string(name_of(collective.param));
                         });

// The sizes of the two calls, in floats per rank.
struct Sizes {
  std::size_t reduced;
  std::size_t gathered;
};

class CallPostedAhead : public testing::TestWithParam<Sizes> {};

// Rank 1 receives the second call's result in device memory, the other ranks in host memory.
TEST_P(CallPostedAhead, MayUseOtherMemoryThanTheCallBefore) {
  const auto ranks = in_session([](RANK_PARAMETERS) {
    const auto [reduced, per_rank] = GetParam();
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<float> from(reduced, 1.0F);
      std::vector<float> to(reduced);
      std::vector<float> block(per_rank, static_cast<float>(world.rank));
      std::vector<float> blocks(per_rank * kFourRanks);
      const DeviceMemory device(session.device(), blocks.size() * 4);
      void* const gathered = world.rank == 1 ? device.pointer() : blocks.data();
      succeed(hcclAllReduce(from.data(), to.data(), reduced, hcclFloat32, hcclSum, group.handle,
                            stream));
      succeed(hcclAllGather(block.data(), gathered, per_rank, hcclFloat32, group.handle, stream));
      succeed(synStreamSynchronize(stream));
      if (world.rank == 1) {
        std::vector<std::byte> bytes(blocks.size() * 4);
        download(stream, device.address(), bytes);
        succeed(synStreamSynchronize(stream));
        std::memcpy(blocks.data(), bytes.data(), bytes.size());
      }
      require(to == std::vector<float>(reduced, kFourRanks), "the sum");
      for (std::size_t at = 0; at < blocks.size(); ++at) {
        const auto sender = static_cast<float>(static_cast<int>(at / per_rank));
        require(blocks[at] == sender, join("element ", at));
      }
    }
  });
  EXPECT_EQ(failures(run_ranks(kFourRanks, ranks)), "");
}

INSTANTIATE_TEST_SUITE_P(Sizes, CallPostedAhead,
                         // Larger and smaller than a host payload.
                         testing::Values(Sizes{16'384, 4'096}, Sizes{1'024, 512}),
                         [](const auto& sizes) { return std::to_string(sizes.param.reduced); });

// A short broadcast sends data from the root only. If a rank names another root or skips the
// broadcast, the communicator must fail on every rank, even if another collective follows.
class BroadcastBetweenAllReduces : public testing::TestWithParam<bool> {};

TEST_P(BroadcastBetweenAllReduces, FailsIfARankDiffers) {
  const bool leaves_out = GetParam();
  const auto ranks = in_session([=](RANK_PARAMETERS) {
    const DeviceMemory memory(session.device(), 4096);
    const auto broadcast = [&](int root) {
      return hcclBroadcast(memory.pointer(), memory.pointer(), 8, hcclFloat32, root, group.handle,
                           stream);
    };
    const auto reduce = [&] {
      return hcclAllReduce(memory.pointer(), memory.pointer(), 8, hcclFloat32, hcclSum,
                           group.handle, stream);
    };
    for (int root = 0; root < kFourRanks; ++root)
      succeed(broadcast(root));  // opens the connections
    succeed(synStreamSynchronize(stream));
    static_cast<void>(reduce());
    if (world.rank != 3) static_cast<void>(broadcast(0));
    if (world.rank == 3 && !leaves_out) static_cast<void>(broadcast(3));
    static_cast<void>(reduce());
    static_cast<void>(synStreamSynchronize(stream));
    await_async_error(group, std::chrono::seconds(20));
    expect_failed(group, hcclInvalidUsage, std::nullopt);
  });
  EXPECT_EQ(failures(run_ranks(kFourRanks, ranks)), "");
}

INSTANTIATE_TEST_SUITE_P(LeavesOut, BroadcastBetweenAllReduces, testing::Bool());

}  // namespace
}  // namespace hccl::test
