// SPDX-License-Identifier: Apache-2.0
// The host view of an allocation must stay at one address, even when the allocation moves to other
// pages.
#include "base/error.h"
#include "children.h"
#include "device/arena.h"
#include "device/copy.h"
#include "device/view_space.h"
#include "samples.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hccl::device {
namespace {

// More bytes than the library maps in one piece.
constexpr std::uint64_t kLong = ArenaView::kWindowBytes + 3 * ArenaView::kLongestSpan;

TEST(HostView, ShowsContentsOfAllocation) {
  Arena arena(base_address(0), 2 * kLong);
  static_cast<void>(arena.allocate(4096));
  const DeviceAddress address = arena.allocate(kLong);
  std::byte* const view = arena.host_view(address, kLong);
  for (const std::uint64_t at : {std::uint64_t{0}, ArenaView::kWindowBytes - 1, kLong - 8}) {
    const std::uint64_t written = at * 31 + 7;
    copy_to_device(arena, address + at, &written, sizeof written);
    std::uint64_t seen = 0;
    std::memcpy(&seen, view + at, sizeof seen);
    EXPECT_EQ(seen, written) << at;
    view[at] = std::byte{0xA5};
    std::byte read{};
    copy_to_host(arena, &read, address + at, 1);
    EXPECT_EQ(read, std::byte{0xA5}) << at;
  }
}

TEST(HostView, IsTheSameForEveryPart) {
  Arena arena(base_address(0), 4 * kMiB);
  const DeviceAddress address = arena.allocate(kMiB);
  std::byte* const view = arena.host_view(address, kMiB);
  EXPECT_EQ(arena.host_view(address + 100, 5), view + 100);
}

TEST(HostView, StaysInPlaceWhenPagesMove) {
  Arena arena(base_address(0), 4 * kMiB);
  const DeviceAddress address = arena.allocate(kMiB);
  std::byte* const view = arena.host_view(address, kMiB);
  std::memset(view, 0x11, kMiB);
  const std::uint64_t before = arena.file_offset(address);
  arena.move_to_fresh_pages({before, 1});
  ASSERT_NE(arena.file_offset(address), before);
  std::memset(arena.view()->at(before), 0xff, kMiB / 2);  // a late store to the old pages
  EXPECT_EQ(arena.host_view(address, kMiB), view);
  EXPECT_EQ(view[0], std::byte{0x11});
  view[kMiB / 2] = std::byte{0x22};
  std::byte read{};
  copy_to_host(arena, &read, address + kMiB / 2, 1);
  EXPECT_EQ(read, std::byte{0x22});
}

TEST(HostView, RequiresOneLiveAllocation) {
  Arena arena(base_address(0), 4 * kMiB);
  const DeviceAddress address = arena.allocate(kMiB);
  EXPECT_THROW(static_cast<void>(arena.host_view(address, kMiB + 1)), Error);
  EXPECT_THROW(static_cast<void>(arena.host_view(address + 2 * kMiB, 1)), Error);
  arena.release(address, [] { return true; });
  EXPECT_THROW(static_cast<void>(arena.host_view(address, 1)), Error);
}

TEST(HostView, IsDistinguishedFromOtherMemory) {
  Arena arena(base_address(0), 8 * kMiB);
  Arena other(base_address(1), 8 * kMiB);
  const DeviceAddress first = arena.allocate(kMiB);
  const DeviceAddress second = arena.allocate(kMiB);
  std::uint64_t local = 0;
  const auto number = [](const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); };
  EXPECT_EQ(arena.behind_view(number(&local)), number(&local));
  std::byte* const view = arena.host_view(second, kMiB);
  EXPECT_EQ(arena.behind_view(number(view) + 77), second + 77);
  EXPECT_EQ(arena.behind_view(first), first);
  for (const std::uint64_t address : {std::uint64_t{0}, number(&local), ~std::uint64_t{0}})
    EXPECT_EQ(arena.behind_view(address), address);
  EXPECT_EQ(other.behind_view(number(view)), number(view));
  EXPECT_EQ(arena.find_seen_at(number(view) + kMiB - 1), second + kMiB - 1);
  EXPECT_FALSE(arena.find_seen_at(number(&local)));
  arena.move_to_fresh_pages(arena.resolve(second, 1, "memory"));
  EXPECT_EQ(arena.behind_view(number(view) + 77), second + 77);
  arena.release(second, [] { return true; });
  EXPECT_FALSE(arena.find_seen_at(number(view)));
}

TEST(HostView, SharesMappingWithNeighbours) {
  Arena arena(base_address(0), 8 * kMiB);
  const auto show = [&] { static_cast<void>(arena.host_view(arena.allocate(8000), 1)); };
  show();
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
  const auto before = mappings();
  for (int more = 0; more < 20; ++more) show();
  EXPECT_LT(mappings(), before + 5);
}

// Returns true if a ViewSpace of `bytes` bytes can be reserved when the address-space limit is
// `room` bytes above the process's current size.
bool is_reserved_within(std::uint64_t bytes, std::uint64_t room) {
  const int status = test::status_in_child([&] {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + room;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    return ViewSpace(bytes).address_at(0) != nullptr ? 1 : 0;
  });
  EXPECT_TRUE(status == 0 || status == 1) << status;
  return status == 1;
}

TEST(ViewSpace, LeavesAtLeastAsMuchAddressSpaceFree) {
  constexpr std::uint64_t kBytes = 4096 * kMiB;
  EXPECT_FALSE(is_reserved_within(kBytes, kBytes / 2));
  EXPECT_FALSE(is_reserved_within(kBytes, kBytes + kBytes / 2));
  EXPECT_TRUE(is_reserved_within(kBytes, 2 * kBytes + kBytes / 2));
  EXPECT_NE(ViewSpace(kBytes).address_at(0), nullptr);
}

}  // namespace
}  // namespace hccl::device
