// SPDX-License-Identifier: Apache-2.0
// Tests the library's use of memory: memory that was never written occupies no pages, and a limited
// address space suffices. A failure to start a thread must fail only the call that needs the
// thread.
#include "faults.h"
#include "rank_test.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace hccl::test {
namespace {

constexpr int kRanks = 8;

// Returns the allocated bytes of all memory files that this process has open, its own and those of
// its peers. Each file counts once.
std::size_t shared_memory_in_use() {
  std::map<ino_t, std::size_t> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat status {};
    if (!gone && target.starts_with("/memfd:") && stat(entry.path().c_str(), &status) == 0)
      files[status.st_ino] = static_cast<std::size_t>(status.st_blocks) * 512;
  }
  require(!files.empty(), "device memory is a memory file");
  std::size_t bytes = 0;
  for (const auto& [inode, size] : files) bytes += size;
  return bytes;
}

// Limits the address space like `ulimit -v 16000000`. Does nothing under a sanitizer, which
// reserves far more address space.
void limit_address_space() {
  if (sanitized()) return;
  const rlimit limit{rlim_t{16'000'000} * 1024, rlim_t{16'000'000} * 1024};
  require(setrlimit(RLIMIT_AS, &limit) == 0, "setting the limit of the address space");
}

RankFunction within_limits(RankBody body) {
  return in_session(std::move(body), [](const World&) { limit_address_space(); });
}

struct Sizes {
  Collective collective;
  std::size_t send_bytes;
  std::size_t receive_bytes;
};

Sizes sizes_of(Collective collective) {
  const std::size_t send = (sanitized() ? 32 : 256) * kMiB;
  return {collective, send, collective == Collective::all_reduce ? send : send / kRanks};
}

// Returns a rank function that reduces inputs that were never written. Reading the inputs must not
// allocate their pages. Shared memory may grow by at most the size of the outputs and half the size
// of the inputs.
RankFunction holes(const Sizes& sizes) {
  return within_limits([sizes](RANK_PARAMETERS) {
    const DeviceMemory send(session.device(), sizes.send_bytes);
    const DeviceMemory receive(session.device(), sizes.receive_bytes);
    world.board->barrier(0, world.size);
    const std::size_t before = shared_memory_in_use();
    world.board->barrier(0, world.size);
    void* from = send.pointer();
    void* to = receive.pointer();
    if (sizes.collective == Collective::all_reduce) {
      succeed(hcclAllReduce(from, to, sizes.receive_bytes / 4, hcclFloat32, hcclSum, group.handle,
                            stream));
    } else {
      succeed(hcclReduceScatter(from, to, sizes.receive_bytes / 4, hcclFloat32, hcclSum,
                                group.handle, stream));
    }
    succeed(synStreamSynchronize(stream));
    world.board->barrier(0, world.size);
    const std::size_t after = shared_memory_in_use();
    world.board->barrier(0, world.size);
    const std::size_t inputs = kRanks * sizes.send_bytes;
    const std::size_t outputs = kRanks * sizes.receive_bytes;
    require(after <= before + outputs + inputs / 2,
            join("shared memory grew by ", (after - before) / kMiB, " MiB for outputs of ",
                 outputs / kMiB, " MiB"));
    std::vector<std::byte> result(kMiB);
    download(stream, receive.address() + sizes.receive_bytes - kMiB, result);
    succeed(synStreamSynchronize(stream));
    require(result == std::vector<std::byte>(kMiB), "the sum of zeros is zero");
  });
}

TEST(Holes, InAllReduceInputsStayUnallocated) {
  EXPECT_EQ(failures(run_ranks(kRanks, holes(sizes_of(Collective::all_reduce)))), "");
}

TEST(Holes, InReduceScatterInputsStayUnallocated) {
  EXPECT_EQ(failures(run_ranks(kRanks, holes(sizes_of(Collective::reduce_scatter)))), "");
}

// Reduces inputs that contain ten islands of data and holes in between.
RANK_BODY(sparse) {
  constexpr std::size_t kBytes = 64 * kMiB;
  const DeviceMemory send(session.device(), kBytes);
  const DeviceMemory receive(session.device(), kBytes);
  std::vector<std::uint32_t> expected(kBytes / 4);
  for (std::uint32_t island = 0; island < 10; ++island) {
    for (int rank = 0; rank < world.size; ++rank) {
      const std::size_t start =
          std::size_t{island} * 1'600'003 + static_cast<std::size_t>(rank) * 12'345;
      const std::size_t length = 1 + std::size_t{island} * 1000;
      for (std::size_t at = start; at < start + length; ++at) expected[at] += island + 1;
      if (rank != world.rank) continue;
      succeed(synMemsetD32Async(send.address() + start * 4, island + 1, length, stream));
    }
  }
  succeed(hcclAllReduce(send.pointer(), receive.pointer(), kBytes / 4, hcclInt32, hcclSum,
                        group.handle, stream));
  std::vector<std::uint32_t> result(kBytes / 4);
  succeed(synMemCopyAsync(stream, receive.address(), kBytes, host_address(result.data()),
                          DRAM_TO_HOST));
  succeed(synStreamSynchronize(stream));
  require(result == expected, "islands of data are reduced at their offsets");
}

// A stream's staging buffer is larger than 1 MiB. A short call may allocate only the pages that it
// uses.
RANK_TEST(StagingBuffers, AreAllocatedOnFirstUse, 2) {
  constexpr int kStreams = 32;
  const std::size_t before = shared_memory_in_use();
  for (int number = 0; number < kStreams; ++number) {
    synStreamHandle own = session.make_stream();
    std::array<float, 8> values{};
    values.fill(1.0F);
    succeed(hcclAllReduce(values.data(), values.data(), values.size(), hcclFloat32, hcclSum,
                          group.handle, own));
    succeed(world.rank == 0 ? hcclSend(values.data(), 8, hcclFloat32, 1, group.handle, own)
                            : hcclRecv(values.data(), 8, hcclFloat32, 0, group.handle, own));
    succeed(synStreamSynchronize(own));
    require(values.front() == 2.0F, "the sum");
  }
  world.board->barrier(0, world.size);
  const std::size_t grown = shared_memory_in_use() - before;
  require(grown <= kStreams * kMiB / 4, join("shared memory grew by ", grown >> 10, " KiB"));
}

TEST(Holes, BetweenIslandsOfDataStayUnallocated) {
  EXPECT_EQ(failures(run_ranks(4, within_limits(sparse))), "");
}

// Returns how many bytes of memory files are mapped in this process's page tables.
std::size_t mapped_shared_memory() {
  std::ifstream status("/proc/self/status");
  std::size_t kib = 0;
  for (std::string key; status >> key;) {
    if (key == "RssShmem:") status >> kib;
  }
  return kib * 1024;
}

// Each rank must map its own buffers as a whole, but only its share of each peer's buffers.
RANK_TEST(NewBuffers, AreMappedByShares, kRanks) {
  constexpr std::size_t kBytes = 8 * kMiB;
  const std::size_t before = mapped_shared_memory();
  const DeviceMemory send(session.device(), kBytes);
  const DeviceMemory receive(session.device(), kBytes);
  const std::vector<float> ones(kBytes / sizeof(float), 1.0F);
  upload(stream, ones, send.address());
  for (int use = 0; use < 3; ++use) {
    succeed(hcclAllReduce(send.pointer(), receive.pointer(), ones.size(), hcclFloat32, hcclSum,
                          group.handle, stream));
  }
  std::vector<float> sums(ones.size());
  download(stream, receive.address(), sums);
  succeed(synStreamSynchronize(stream));
  require(sums == std::vector<float>(ones.size(), float{kRanks}), "the sums");
  const std::size_t grown = mapped_shared_memory() - before;
  require(grown <= 4 * kBytes + 4 * kMiB, join("the rank has mapped ", grown / kMiB, " MiB"));
}

TEST(AddressSpace, SixteenGigabytesSuffice) {
  const auto reduce = [](RANK_PARAMETERS) {
    run_and_verify(session, group, stream, all_reduce_of(500'000));
  };
  EXPECT_EQ(failures(run_ranks(kRanks, within_limits(reduce))), "");
}

// Device memory must have the size in HCCL_DEVICE_MEMORY, and larger allocations must be refused.
RANK_TEST(DeviceMemorySize, FollowsTheEnvironment, 1,
          RankOptions{.environment = {{"HCCL_DEVICE_MEMORY", "64M"}}}) {
  std::uint64_t free_before = 0;
  std::uint64_t total = 0;
  succeed(synDeviceGetMemoryInfo(session.device(), &free_before, &total));
  require_equal(total, std::uint64_t{64} * kMiB, "the requested memory");
  std::uint64_t address = 0;
  expect_code(synDeviceMalloc(session.device(), total + 1, 0, 0, &address), synOutOfDeviceMemory);
  const DeviceMemory all(session.device(), free_before);
  expect_code(synDeviceMalloc(session.device(), 1 * kMiB, 0, 0, &address), synOutOfDeviceMemory);
}

// While an object of this class exists, the process cannot start threads, because the default stack
// size exceeds any address space.
class NoThreads {
 public:
  NoThreads() {
    require(pthread_getattr_default_np(&usual_) == 0, "thread attributes");
    pthread_attr_t endless = usual_;
    require(pthread_attr_setstacksize(&endless, std::size_t{1} << 60) == 0,
            "setting the stack size");
    require(pthread_setattr_default_np(&endless) == 0, "thread attributes");
  }
  ~NoThreads() {
    pthread_setattr_default_np(&usual_);
    pthread_attr_destroy(&usual_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t usual_{};
};

// The first call on a stream starts the stream's thread. If the thread cannot start, the call must
// have no effect, and a retry must behave like a first call.
void first_call_without_threads(World& world) {
  Session session(world);
  const DeviceMemory memory(session.device(), 64);
  synStreamHandle loading = session.make_stream();
  const std::vector ones(64, std::byte{1});  // read when the copy runs
  upload(loading, ones, memory.address());
  succeed(synStreamSynchronize(loading));
  void* const buffer = memory.pointer();
  for (const bool destroys : {true, false}) {
    hcclUniqueId id;
    hcclComm_t alone{};
    succeed(hcclGetUniqueId(&id));
    succeed(hcclCommInitRank(&alone, 1, id, 0));
    synStreamHandle stream = session.make_stream();
    {
      const NoThreads limit;
      require_equal(hcclAllReduce(buffer, buffer, 64, hcclInt8, hcclSum, alone, stream),
                    hcclSystemError, "a call without a worker thread");
    }
    if (!destroys) succeed(hcclAllReduce(buffer, buffer, 64, hcclInt8, hcclSum, alone, stream));
    while (synStreamQuery(stream) == synBusy) std::this_thread::yield();
    succeed(hcclCommDestroy(alone));
    succeed(synStreamSynchronize(stream));
  }
  session.finish();
}

TEST(ThreadCreation, FailureFailsOnlyTheCall) {
  const RankOptions options{.seconds = 20};
  EXPECT_EQ(failures(run_ranks(1, first_call_without_threads, options)), "");
}

}  // namespace
}  // namespace hccl::test
