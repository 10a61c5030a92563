// SPDX-License-Identifier: Apache-2.0
// Tests host memory in collectives and messages: errors must name the flaw in a buffer, and no rank
// may wait forever.
#include "faults.h"
#include "messages.h"
#include "rank_test.h"

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl::test {
namespace {

// Anonymous memory with an unmapped page in the middle.
class HolePages {
 public:
  explicit HolePages(std::size_t bytes)
      : bytes_(bytes),
        memory_(static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    munmap(memory_ + bytes / 2, 4096);
  }
  ~HolePages() {
    munmap(memory_, bytes_ / 2);
    munmap(memory_ + bytes_ / 2 + 4096, bytes_ / 2 - 4096);
  }
  HolePages(const HolePages&) = delete;
  HolePages& operator=(const HolePages&) = delete;
  [[nodiscard]] void* get() const { return memory_; }

 private:
  std::size_t bytes_;
  std::byte* memory_;
};

// Returns a rank function in which rank 1's send or receive buffer has an unmapped page in the
// middle. Rank 1 calls last, because after its failure the library would refuse the other ranks'
// calls.
RankFunction bad_page(bool receives) {
  return in_session([receives](RANK_PARAMETERS) {
    const DeviceMemory memory(session.device(), 4 * kMiB);
    const HolePages bad(4 * kMiB);
    void* const good = memory.pointer();
    const bool odd = world.rank == 1;
    if (odd) world.board->barrier(0, world.size);
    succeed(hcclAllReduce(odd && !receives ? bad.get() : good, odd && receives ? bad.get() : good,
                          kMiB, hcclFloat32, hcclSum, group.handle, stream));
    if (!odd) world.board->barrier(0, world.size);
    expect_code(synStreamSynchronize(stream), synFailHccl);
    expect_failed(group, hcclInvalidArgument, 1);
    const std::string text = hcclCommGetAsyncErrorMessage(group.handle);
    require(contains(text, "host address"), text);
    expect_usable_remains(session, group, stream, hcclInvalidArgument);
  });
}

TEST(HostMemory, NamesAnUnmappedAddress) {
  EXPECT_EQ(failures(run_ranks(3, bad_page(false))), "");
  EXPECT_EQ(failures(run_ranks(3, bad_page(true))), "");
}

// The sender calls last, because after its failure the library would refuse the receiver's call.
RANK_TEST(HostMemory, AnUnmappedBufferFailsAMessage, 2) {
  const DeviceMemory memory(session.device(), 4 * kMiB);
  const HolePages bad(4 * kMiB);
  if (world.rank == 0) {
    succeed(hcclRecv(memory.pointer(), 4 * kMiB, hcclInt8, 1, group.handle, stream));
    world.board->barrier(0, world.size);
  } else {
    world.board->barrier(0, world.size);
    succeed(hcclSend(bad.get(), 4 * kMiB, hcclInt8, 0, group.handle, stream));
  }
  expect_code(synStreamSynchronize(stream), synFailHccl);
  expect_failed(group, hcclInvalidArgument, 1);
}

// The sends of a group must not block each other. Rank 1 receives from rank 0 only after rank 2 has
// received from rank 0.
RANK_TEST(HostMemory, GroupedSendsDoNotBlockEachOther, std::vector{3}, std::vector{3}) {
  constexpr std::size_t kBytes = 3 * kMiB + 5;
  Messages messages(session, group, Placement::host);
  if (world.rank == 0) {
    succeed(hcclGroupStart());
    succeed(messages.send(1, kBytes, hcclInt8, 1, stream));
    succeed(messages.send(2, kBytes, hcclInt8, 2, stream));
    succeed(hcclGroupEnd());
  } else if (world.rank == 2) {
    succeed(messages.receive(0, kBytes, hcclInt8, 2, stream));
    succeed(messages.send(1, 1, hcclInt8, 3, stream));
  } else {
    succeed(messages.receive(2, 1, hcclInt8, 3, stream));
    succeed(synStreamSynchronize(stream));
    succeed(messages.receive(0, kBytes, hcclInt8, 1, stream));
  }
  succeed(synStreamSynchronize(stream));
  messages.verify(stream);
}

// Kills the last rank 30 ms after a series of all-reduces on host memory has begun.
RANK_BODY(dies_between_slices) {
  constexpr std::size_t kCount = 4 * kMiB;
  const int last = world.size - 1;
  std::vector<float> buffer(kCount, 1.5F);
  if (world.rank == last) {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      kill(getpid(), SIGKILL);
    }).detach();
  }
  for (;;) {
    const hcclResult_t result = hcclAllReduce(buffer.data(), buffer.data(), kCount, hcclFloat32,
                                              hcclMax, group.handle, stream);
    if (result == hcclSystemError) break;
    succeed(result);
    const synStatus status = synStreamSynchronize(stream);
    if (status == synFailHccl) break;
    succeed(status);
  }
  expect_failed(group, hcclSystemError, last);
}

TEST(HostMemory, ErrorNamesADeadRank) {
  const RankOptions options{.victim = 3};
  EXPECT_EQ(failures(run_ranks(4, in_session(dies_between_slices), options), 3), "");
}

// A call must be refused if no device memory is left for its staging buffer. The refused call must
// not queue a message or change the order of calls.
RANK_TEST(HostMemory, WithoutRoomForAStagingBufferIsRefusedCleanly, 2,
          RankOptions{.environment = {{"HCCL_DEVICE_MEMORY", "64M"}, {"HCCL_TIMEOUT", "5"}}}) {
  synStreamHandle first = session.make_stream();
  synStreamHandle second = session.make_stream();
  std::vector<std::byte> host(100'000);
  void* const buffer = host.data();
  if (world.rank == 0) {
    std::uint64_t free = 0, total = 0, all = 0;
    succeed(synDeviceGetMemoryInfo(session.device(), &free, &total));
    succeed(synDeviceMalloc(session.device(), free - 8192, 0, 0, &all));
    const auto refused = [](hcclResult_t result) {
      expect_code(result, hcclOutOfMemory, "staging buffer for host memory");
    };
    refused(hcclSend(buffer, host.size(), hcclInt8, 1, group.handle, first));
    refused(hcclAllReduce(buffer, buffer, host.size(), hcclInt8, hcclMax, group.handle, first));
    succeed(hcclGroupStart());
    refused(hcclSend(buffer, host.size(), hcclInt8, 1, group.handle, first));
    succeed(hcclGroupEnd());
    succeed(synDeviceFree(session.device(), all, 0));
  }
  succeed(hcclBarrier(group.handle, second));
  succeed(world.rank == 0 ? hcclSend(buffer, host.size(), hcclInt8, 1, group.handle, first)
                          : hcclRecv(buffer, host.size(), hcclInt8, 0, group.handle, first));
  succeed(synStreamSynchronize(first));
  succeed(synStreamSynchronize(second));
}

// Memory may be unmapped or protected once the calls that use it are complete. A later call that
// reads unmapped memory or writes read-only memory must fail, even a small one.
RANK_TEST(HostMemory, UnmappedOrProtectedBetweenSmallCallsIsAnError, 2) {
  constexpr std::size_t kBytes = 4096;
  constexpr std::size_t kCount = 16;
  void* const unmapped =
      mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const page = static_cast<std::byte*>(unmapped) + kBytes;
  std::array<float, kCount> good{};
  const auto all_reduce = [&](void* send, void* receive) {
    return hcclAllReduce(send, receive, kCount, hcclFloat32, hcclSum, group.handle, stream);
  };
  for (int call = 0; call < 3; ++call) {
    succeed(all_reduce(unmapped, unmapped));
    succeed(all_reduce(page, page));
  }
  succeed(synStreamSynchronize(stream));
  if (world.rank == 1) {
    require(munmap(unmapped, kBytes) == 0, "unmapping the page");
    expect_code(all_reduce(unmapped, good.data()), hcclInvalidArgument, "mapped host memory");
    require(mprotect(page, kBytes, PROT_READ) == 0, "protecting the page");
  }
  succeed(all_reduce(page, good.data()));
  succeed(synStreamSynchronize(stream));
  world.board->barrier(0, 2);
  if (world.rank == 0) succeed(all_reduce(good.data(), good.data()));
  world.board->barrier(1, 2);
  if (world.rank == 1) succeed(all_reduce(good.data(), page));
  static_cast<void>(synStreamSynchronize(stream));
  await_async_error(group);
  expect_failed(group, hcclInvalidArgument, 1);
  const std::string text = hcclCommGetAsyncErrorMessage(group.handle);
  require(contains(text, "receive buffer") && contains(text, "cannot be written"), text);
}

// The root's data passes through a staging buffer that is smaller than the data. No slice may be
// stored beyond the end of that buffer.
RANK_TEST(HostMemory, InPlaceBroadcastToADeviceWritesNothingAtTheRoot, 2) {
  std::vector<std::byte> sent(6 * kMiB);
  for (std::size_t at = 0; at < sent.size(); ++at) sent[at] = static_cast<std::byte>(at * 31 >> 3);
  std::vector<std::byte> buffer = sent;
  succeed(hcclBroadcast(buffer.data(), buffer.data(), kMiB, hcclInt8, 0, group.handle, stream));
  const DeviceMemory memory(session.device(), sent.size());
  const std::vector<std::byte> poison(sent.size(), std::byte{0x5A});
  upload(stream, poison, memory.address());
  void* const on_device = memory.pointer();
  void* const own = world.rank == 0 ? buffer.data() : on_device;
  succeed(hcclBroadcast(own, own, sent.size(), hcclInt8, 0, group.handle, stream));
  std::vector<std::byte> after(sent.size());
  download(stream, memory.address(), after);
  succeed(synStreamSynchronize(stream));
  require(after == (world.rank == 0 ? poison : sent), "the device memory");
  require(buffer == sent || world.rank != 0, "the root's buffer");
}

// Ranks other than the root may pass any receive pointer to a reduce.
RANK_TEST(HostMemory, QueuedReducesIgnoreTheReceivePointerOfOtherRanks, 3) {
  constexpr std::size_t kCount = 5'000;
  const std::vector<float> send(kCount, 1.0F);
  std::vector<float> recv(kCount + 1);
  for (int call = 0; call < 40; ++call) {
    void* const unaligned = reinterpret_cast<std::byte*>(recv.data()) + 4;
    void* const target = world.rank == call % 3 || call % 2 == 0 ? unaligned : nullptr;
    succeed(hcclReduce(send.data(), target, kCount, hcclFloat32, hcclSum, call % 3, group.handle,
                       stream));
  }
  succeed(synStreamSynchronize(stream));
  require(recv[1] == 3.0F && recv[kCount] == 3.0F, "the sum");
}

RANK_TEST(HostMemory, IsRefusedInStrictMode, 1,
          RankOptions{.environment = {{"HCCL_STRICT", "1"}}}) {
  float value = 1;
  expect_code(hcclAllReduce(&value, &value, 1, hcclFloat32, hcclSum, group.handle, stream),
              hcclInvalidArgument, "HCCL_STRICT");
}

}  // namespace
}  // namespace hccl::test
