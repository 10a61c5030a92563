// SPDX-License-Identifier: Apache-2.0
// Tests device memory that is freed while another stream uses adjacent memory. The library
// registers memory in granules of 2 MiB, and one granule can contain both. Calls on the adjacent
// memory must not keep the freed pages registered.
#include "rdma_test.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr std::size_t kBytes = 64 << 10;
std::atomic<bool> slow_holes{false};

}  // namespace
}  // namespace hccl::test

// Replaces libc's fallocate(), which the library calls. Punches holes slowly, so that calls on the
// adjacent memory have time to race with it.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's names are reserved
extern "C" int fallocate(int file, int mode, off_t offset, off_t length) {
  if (hccl::test::slow_holes && (mode & FALLOC_FL_PUNCH_HOLE) != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  return static_cast<int>(syscall(SYS_fallocate, file, mode, offset, length));
}

namespace hccl::test {
namespace {

// Runs broadcasts that read and write the neighbouring memory.
void use(std::uint64_t neighbour, const Group& group, synStreamHandle stream, int times) {
  void* const buffer = device_pointer(neighbour);
  for (int i = 0; i < times; ++i) {
    succeed(hcclBroadcast(buffer, buffer, kBytes / 4, hcclUint8, 0, group.handle, stream));
    succeed(synStreamSynchronize(stream));
  }
}

// Makes the library return freed pages to the system. An allocation does this, provided that all
// queued work that can access the pages has completed.
void return_freed_pages(const Session& session) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const DeviceMemory another(session.device(), std::size_t{4} << 20);
}

// In each round, rank 0 allocates, sends and frees a buffer, and rank 1 receives into a buffer that
// it keeps. Returns the number of wrong messages.
int exchange_freed_buffers(const Session& session, const Group& group, synStreamHandle stream,
                           int rounds) {
  int wrong = 0;
  const DeviceMemory kept(session.device(), kBytes);
  std::vector<std::byte> got(kBytes);
  for (int round = 0; round < rounds; ++round) {
    const std::vector<std::byte> sent(kBytes, static_cast<std::byte>(1 + round % 100));
    if (group.rank == 0) {
      {
        const DeviceMemory memory(session.device(), kBytes);
        upload(stream, sent, memory.address());
        succeed(hcclSend(memory.pointer(), kBytes, hcclUint8, 1, group.handle, stream));
        succeed(synStreamSynchronize(stream));
      }
      return_freed_pages(session);
    } else {
      succeed(hcclRecv(kept.pointer(), kBytes, hcclUint8, 0, group.handle, stream));
      download(stream, kept.address(), got);
      succeed(synStreamSynchronize(stream));
      wrong += got == sent ? 0 : 1;
    }
  }
  return wrong;
}

class RdmaNeighbours : public OnRdmaHosts {};

TEST_F(RdmaNeighbours, DoNotPinReplacedPages) {
  const int rounds = scaled(150);
  run_pair([&](Session& session, const Group& group, synStreamHandle stream) {
    const DeviceMemory neighbour(session.device(), kBytes);
    synStreamHandle beside = session.make_stream();
    const std::vector<std::byte> nothing(kBytes);
    upload(beside, nothing, neighbour.address());
    succeed(synStreamSynchronize(beside));
    slow_holes = true;
    std::thread user([&] { use(neighbour.address(), group, beside, 20 * rounds); });
    const int wrong = exchange_freed_buffers(session, group, stream, rounds);
    user.join();
    require_equal(wrong, 0, "messages with wrong contents");
  });
}

}  // namespace
}  // namespace hccl::test
