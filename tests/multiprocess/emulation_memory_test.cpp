// SPDX-License-Identifier: Apache-2.0
// Tests calls whose buffers are host views, which are second addresses of device memory.
#include "check.h"
#include "operation.h"
#include "rank_test.h"
#include "ranks.h"
#include "session.h"

#include <hccl.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hccl_emulation.h>
#include <sys/resource.h>

namespace hccl::test {
namespace {

constexpr std::size_t kFloats = 50'000;
constexpr std::size_t kFloatsSize = kFloats * sizeof(float);

void require_refused(hcclResult_t result, const char* part) {
  expect_code(result, hcclInvalidArgument, part);
}

std::byte* bytes_of(const DeviceMemory& memory) { return static_cast<std::byte*>(memory.view()); }

RANK_BODY(run_on_views) {
  std::uint64_t seed = 0;
  for (const std::size_t count : {std::size_t{3}, std::size_t{100'000}}) {
    for (const bool in_place : {false, true}) {
      for (int round = 0; round < 2; ++round) {
        Operation operation = make_operation(Collective::all_reduce, count);
        operation.placement = Placement::view;
        operation.in_place = in_place;
        operation.offset = 5;
        operation.seed = 1000 * seed++;
        run_and_verify(session, group, stream, operation);
      }
    }
  }
}

TEST(ViewAsBuffer, IsUsedWithoutStaging) {
  const RankOptions options{.environment = {{"HCCL_EXPLAIN", "1"}, {"HCCL_STRICT", "1"}},
                            .capture_stderr = true};
  for (const int ranks : {1, 3}) {
    const auto outcomes = run_ranks(ranks, in_session(run_on_views), options);
    EXPECT_EQ(failures(outcomes), "") << ranks;
    const std::string& printed = outcomes[0].stderr_text;
    EXPECT_TRUE(contains(printed, "in device memory")) << printed;
    EXPECT_FALSE(contains(printed, "in host memory")) << printed;
  }
}

// A buffer within a view must not extend beyond the view's allocation, even if another allocation
// follows directly.
RANK_TEST(ViewAsBuffer, EndsWithItsAllocation, 1) {
  const DeviceMemory memory(session.device(), kFloatsSize);
  const DeviceMemory next(session.device(), kFloatsSize);
  std::byte* const view = bytes_of(memory);
  static_cast<void>(bytes_of(next));
  require_refused(
      hcclAllReduce(view, view, kFloats + 1, hcclFloat32, hcclSum, group.handle, stream),
      "exceeds allocation");
  require_refused(hcclSend(view + 4, kFloats, hcclFloat32, 0, group.handle, stream),
                  "exceeds allocation");
  // The buffers overlap, though one is given by its view and the other by its device address.
  require_refused(hcclAllReduce(view, device_pointer(memory.address() + 4), kFloats - 1,
                                hcclFloat32, hcclSum, group.handle, stream),
                  "overlap");
  require(synMemCopyAsync(stream, host_address(view), kFloatsSize + 1, next.address(),
                          HOST_TO_DRAM) == synInvalidArgument,
          "a copy that exceeds the allocation");
  require(contains(last_syn_message(), "exceeds allocation"), last_syn_message());
}

RANK_TEST(DeviceAddress, IsFoundForEveryAddressOfAView, 1) {
  const DeviceMemory memory(session.device(), kFloatsSize);
  const DeviceMemory without_view(session.device(), kFloatsSize);
  std::byte* const view = bytes_of(memory);
  std::uint64_t address = 0;
  succeed(hcclEmulationDeviceAddress(view, kFloatsSize, &address));
  require_equal(address, memory.address(), "the address of a view");
  succeed(hcclEmulationDeviceAddress(view + 1001, kFloatsSize - 1001, &address));
  require_equal(address, memory.address() + 1001, "the address within a view");
  require_refused(hcclEmulationDeviceAddress(view + 1, kFloatsSize, &address), "by 1 bytes");
  require_refused(hcclEmulationDeviceAddress(&address, 8, &address), "is not in a host view");
  require_refused(hcclEmulationDeviceAddress(nullptr, 1, &address), "is not in a host view");
  require_refused(hcclEmulationDeviceAddress(view, 1, nullptr), "is null");
  std::uint64_t freed = 0;
  succeed(synDeviceMalloc(session.device(), kFloatsSize, 0, 0, &freed));
  void* gone = nullptr;
  succeed(hcclEmulationHostView(freed, kFloatsSize, &gone));
  succeed(synDeviceFree(session.device(), freed, 0));
  require_refused(hcclEmulationDeviceAddress(gone, 1, &address), "is not in a host view");
}

RANK_TEST(AllocatedMemory, IsReducedWithoutStaging, 2) {
  void* memory = nullptr;
  succeed(hcclEmulationMemAlloc(&memory, kFloatsSize));
  require(reinterpret_cast<std::uintptr_t>(memory) % 128 == 0, "is aligned to 128 bytes");
  auto* const floats = static_cast<float*>(memory);
  for (std::size_t at = 0; at < kFloats; ++at) floats[at] = static_cast<float>(world.rank + 1);
  succeed(hcclAllReduce(memory, memory, kFloats, hcclFloat32, hcclSum, group.handle, stream));
  succeed(synStreamSynchronize(stream));
  for (std::size_t at = 0; at < kFloats; ++at) require(floats[at] == 3, join("element ", at));
  std::uint64_t address = 0;
  succeed(hcclEmulationDeviceAddress(memory, kFloatsSize, &address));
  require_refused(hcclEmulationMemFree(static_cast<std::byte*>(memory) + 4096),
                  "is not from hcclEmulationMemAlloc");
  const DeviceMemory other(session.device(), kFloatsSize);
  require_refused(hcclEmulationMemFree(bytes_of(other)), "is not from hcclEmulationMemAlloc");
  succeed(hcclEmulationMemFree(memory));
  require_refused(hcclEmulationMemFree(memory), "or has been freed");
  require_refused(hcclEmulationMemFree(&address), "is not from hcclEmulationMemAlloc");
  succeed(hcclEmulationMemFree(nullptr));
}

RANK_TEST(AllocatedMemory, IsRefusedWithAReason, 1) {
  void* memory = nullptr;
  require_refused(hcclEmulationMemAlloc(nullptr, 8), "memory is null");
  require_refused(hcclEmulationMemAlloc(&memory, 0), "0 bytes");
  require(hcclEmulationMemAlloc(&memory, std::uint64_t{1} << 60) == hcclOutOfMemory, "too much");
  require(memory == nullptr, "the pointer is unchanged");
}

// Views must be usable as source and destination of a copy, even if the ranges overlap.
RANK_TEST(ViewAsBuffer, CanBeSourceOrDestinationOfACopy, 1) {
  const DeviceMemory from(session.device(), kFloatsSize);
  const DeviceMemory to(session.device(), kFloatsSize);
  std::byte* const source = bytes_of(from);
  std::byte* const target = bytes_of(to);
  std::vector<std::byte> wanted(kFloatsSize);
  for (std::size_t at = 0; at < kFloatsSize; ++at)
    wanted[at] = static_cast<std::byte>(at * 31 + at / 9);
  std::memcpy(source, wanted.data(), kFloatsSize);
  const auto check = [&](const std::byte* got, const char* what) {
    succeed(synStreamSynchronize(stream));
    require(std::memcmp(got, wanted.data(), kFloatsSize - 8) == 0, what);
    std::memset(target, 0xA5, kFloatsSize);
  };
  succeed(synMemCopyAsync(stream, host_address(source), kFloatsSize, to.address(), HOST_TO_DRAM));
  check(target, "from a view to the device");
  succeed(synMemCopyAsync(stream, from.address(), kFloatsSize, host_address(target), DRAM_TO_HOST));
  check(target, "from the device to a view");
  succeed(synMemCopyAsync(stream, host_address(source), kFloatsSize, host_address(target),
                          DRAM_TO_DRAM));
  check(target, "from view to view");
  succeed(synMemCopyAsync(stream, host_address(source), kFloatsSize - 8, from.address() + 8,
                          HOST_TO_DRAM));
  check(source + 8, "from a view to its own device address");
  succeed(synMemsetD8Async(host_address(target), 0x11, kFloatsSize, stream));
  wanted.assign(kFloatsSize, std::byte{0x11});
  check(target, "a fill of a view");
}

// A copy that names a device address where a host address is expected must fail when it runs.
RANK_TEST(Copy, FailsWithADeviceAddressForHostMemory, 1) {
  const DeviceMemory from(session.device(), kFloatsSize);
  const DeviceMemory to(session.device(), kFloatsSize);
  for (const synDmaDir direction : {HOST_TO_DRAM, DRAM_TO_HOST}) {
    synStreamHandle fresh = session.make_stream();
    succeed(synMemCopyAsync(fresh, from.address(), kFloatsSize, to.address(), direction));
    require(synStreamSynchronize(fresh) != synSuccess, join("direction ", direction));
  }
}

// Limits the address space, so that the library cannot map the whole device memory. Each view is
// then a separate host mapping.
void limit_address_space(const World& /*world*/) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::uint64_t{16} << 30;
  require(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

RANK_BODY(run_without_room) {
  for (const Placement placement : {Placement::view, Placement::mixed}) {
    Operation operation = make_operation(Collective::all_reduce, 100'000);
    operation.placement = placement;
    run_and_verify(session, group, stream, operation);
  }
  const DeviceMemory memory(session.device(), kFloatsSize);
  std::uint64_t address = 0;
  succeed(hcclEmulationDeviceAddress(bytes_of(memory) + 7, 1, &address));
  require_equal(address, memory.address() + 7, "the address within a view");
}

TEST(ViewAsBuffer, IsHostMemoryWhenAddressSpaceIsScarce) {
  if (sanitized()) GTEST_SKIP() << "needs another build: sanitizers reserve address space";
  EXPECT_EQ(failures(run_ranks(2, in_session(run_without_room, limit_address_space))), "");
}

}  // namespace
}  // namespace hccl::test
