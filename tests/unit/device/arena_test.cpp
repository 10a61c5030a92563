// SPDX-License-Identifier: Apache-2.0
// Tests device memory and its address allocator.

#include "device/arena.h"

#include "base/syn_error.h"
#include "device/address_allocator.h"
#include "device/copy.h"
#include "samples.h"
#include "system_calls.h"
#include "thrown.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::device {
namespace {

// Random allocations must never overlap, and released memory must merge into one piece.

TEST(AddressAllocator, MergesFreeRangesAndNeverOverlaps) {
  constexpr std::uint64_t kEnd = 1 << 20;
  AddressAllocator allocator(0, kEnd);
  std::mt19937 random(1);
  std::map<std::uint64_t, std::uint64_t> held;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0 || held.empty()) {
      const std::uint64_t bytes = random() % 5'000 + 1;
      const std::uint64_t alignment = 1ull << (random() % 10);
      const auto offset = allocator.allocate(bytes, alignment);
      if (!offset) continue;
      EXPECT_EQ(*offset % alignment, 0u);
      EXPECT_LE(*offset + bytes, kEnd);
      const auto next = held.lower_bound(*offset);
      if (next != held.end()) {
        ASSERT_LE(*offset + bytes, next->first);
      }
      if (next != held.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *offset);
      }
      held.emplace(*offset, bytes);
    } else {
      const auto victim = std::next(held.begin(), static_cast<long>(random() % held.size()));
      allocator.release(victim->first, victim->second);
      held.erase(victim);
    }
  }
  for (const auto& [offset, bytes] : held) allocator.release(offset, bytes);
  EXPECT_EQ(allocator.allocate(kEnd, 1), 0u);
}

// Tests allocation, look-up, release and relocation of device memory.

using test::error_of;

TEST(Arena, AddressesAreNotHostPointers) {
  Arena arena(base_address(0), 16 * kMiB);
  const DeviceAddress address = arena.allocate(100);
  EXPECT_NE(address, 0u);
  EXPECT_GT(address >> 56, 0u);  // not a canonical address on any supported machine
}

TEST(Arena, OneAllocationMayTakeWholeDevice) {
  Arena arena(base_address(0), 96ull << 30);
  EXPECT_EQ(arena.free_bytes(), 96ull << 30);
  const DeviceAddress all = arena.allocate(arena.free_bytes());
  EXPECT_EQ(arena.free_bytes(), 0u);
  EXPECT_THROW(static_cast<void>(arena.allocate(1)), SynError);
  arena.release(all, [] { return true; });
  EXPECT_EQ(arena.free_bytes(), 96ull << 30);
}

TEST(Arena, OverrunErrorNamesAllocation) {
  Arena arena(base_address(0), 16 * kMiB);
  const DeviceAddress address = arena.allocate(1000);
  EXPECT_NO_THROW(static_cast<void>(arena.resolve(address + 400, 600, "sendbuff")));
  const std::string text =
      error_of(hcclInvalidArgument, [&] { return arena.resolve(address + 400, 601, "sendbuff"); });
  EXPECT_NE(text.find("sendbuff"), std::string::npos) << text;
  EXPECT_NE(text.find("1000 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("by 1 bytes"), std::string::npos) << text;
  EXPECT_NE(error_of(hcclInvalidArgument, [&] { return arena.resolve(0x7fff1234, 1, "x"); }), "");
  EXPECT_NE(
      error_of(hcclInvalidArgument, [&] { return arena.resolve(address + 8 * kMiB, 1, "x"); }), "");
}

TEST(Arena, ReusesFreedMemoryOnlyWhenQuiescent) {
  Arena arena(base_address(0), 4 * kMiB);
  const DeviceAddress first = arena.allocate(2 * kMiB);
  const std::vector<std::byte> pattern(2 * kMiB, std::byte{7});
  copy_to_device(arena, first, pattern.data(), pattern.size());
  bool quiet = false;
  arena.release(first, [&] { return quiet; });
  EXPECT_NE(error_of(hcclInvalidArgument, [&] { return arena.resolve(first, 1, "sendbuff"); })
                .find("was freed"),
            std::string::npos);
  std::vector<std::byte> read(pattern.size());
  copy_to_host(arena, read.data(), first,
               read.size());  // like a command that was queued before the free
  EXPECT_EQ(read, pattern);
  EXPECT_NE(arena.allocate(2 * kMiB), first);
  quiet = true;
  arena.collect();
  EXPECT_EQ(arena.allocate(2 * kMiB), first);
  EXPECT_EQ(arena.view()->content(arena.file_offset(first), 2 * kMiB), Content::hole);
}

// Allocates memory, writes it and frees it. Returns its file offset.
std::uint64_t use_and_free(Arena& arena, std::uint64_t bytes) {
  const DeviceAddress address = arena.allocate(bytes);
  const std::vector<std::byte> pattern(bytes, std::byte{7});
  copy_to_device(arena, address, pattern.data(), pattern.size());
  const std::uint64_t offset = arena.file_offset(address);
  arena.release(address, [] { return true; });
  return offset;
}

TEST(Arena, KeepsFreedPagesWithLowestOffsetsUpToLimit) {
  Arena arena(base_address(0), 16 * kMiB, 0, kMiB);
  const std::uint64_t offset = use_and_free(arena, 3 * kMiB);
  EXPECT_EQ(arena.view()->content(offset, kMiB), Content::data);
  EXPECT_EQ(arena.view()->content(offset + kMiB, 2 * kMiB), Content::hole);
}

TEST(Arena, KeptPagesOfNewAllocationDoNotCountAgainstLimit) {
  Arena arena(base_address(0), 16 * kMiB, 0, kMiB);
  const std::uint64_t first = use_and_free(arena, kMiB / 2);
  const DeviceAddress address = arena.allocate(kMiB / 2);
  EXPECT_EQ(arena.file_offset(address) / kPageBytes, first / kPageBytes);
  EXPECT_EQ(arena.view()->content(first, kMiB / 2), Content::data);
  const std::uint64_t second = use_and_free(arena, kMiB - kPageBytes);
  EXPECT_EQ(arena.view()->content(second, kMiB - kPageBytes), Content::data);
  EXPECT_EQ(arena.view()->content(first, kMiB / 2), Content::data);
}

TEST(Arena, KeepsNoFreedPagesByDefault) {
  Arena arena(base_address(0), 16 * kMiB);
  EXPECT_EQ(arena.view()->content(use_and_free(arena, kMiB), kMiB), Content::hole);
}

TEST(Arena, DoubleFreeAndInteriorFreeAreErrors) {
  Arena arena(base_address(0), 4 * kMiB);
  const DeviceAddress address = arena.allocate(8192);
  const auto at_once = [] { return true; };
  EXPECT_THROW(arena.release(address + 128, at_once), SynError);
  arena.release(address, at_once);
  EXPECT_THROW(arena.release(address, at_once), SynError);
}

TEST(Arena, MovingKeepsAddressAndContents) {
  Arena arena(base_address(0), 4 * kMiB);
  const DeviceAddress address = arena.allocate(kMiB);
  std::vector<std::byte> pattern(kMiB);
  for (std::size_t at = 0; at < pattern.size(); ++at) pattern[at] = static_cast<std::byte>(at * 31);
  copy_to_device(arena, address, pattern.data(), pattern.size());
  const std::uint64_t before = arena.file_offset(address);
  arena.move_to_fresh_pages({before + 4096, 1});
  EXPECT_NE(arena.file_offset(address), before);
  std::memset(arena.view()->at(before), 0xff, kMiB);  // a late store of another rank
  std::vector<std::byte> read(kMiB);
  copy_to_host(arena, read.data(), address, read.size());
  EXPECT_EQ(read, pattern);
  arena.release(address, [] { return true; });
  EXPECT_NE(arena.allocate(kMiB), address);  // the old pages must not be reused
}

TEST(Arena, CopiesResultToMovedPages) {
  Arena arena(base_address(0), 16 * kMiB);
  const std::uint64_t size = 3 * kMiB + 5;
  const DeviceAddress address = arena.allocate(size);
  const Placement before = arena.locate(address);
  arena.move_to_fresh_pages({before.file_offset, 1});
  for (std::uint64_t at = 0; at < size; at += kMiB)  // stores of other ranks to the old pages
    std::memset(arena.view()->at(before.file_offset + at), 7, std::min(kMiB, size - at));
  arena.copy_if_moved(address, before, size);
  std::vector<std::byte> read(size);
  copy_to_host(arena, read.data(), address, size);
  EXPECT_EQ(read, std::vector<std::byte>(size, std::byte{7}));
  arena.release(address, [] { return true; });
  EXPECT_EQ(arena.view()->content(before.file_offset, size), Content::hole);
}

// Moves an allocation on a kernel that cannot distinguish holes from data. Exits with 0 if the
// allocation keeps its data.
[[noreturn]] void move_without_seeking() {
  test::refuse_system_calls({SYS_lseek, 2, {SEEK_DATA, SEEK_HOLE}}, EINVAL);
  Arena arena(base_address(0), 16 * kMiB);
  const std::uint64_t size = 3 * kMiB;
  const DeviceAddress address = arena.allocate(size);
  const std::vector<std::byte> data(size / 2, std::byte{7});
  copy_to_device(arena, address + kMiB, data.data(), data.size());
  const MemoryRange range = arena.resolve(address, size, "memory");
  const bool is_data = arena.view()->content(range.file_offset + kMiB, 10) == Content::data &&
                       !arena.view()->is_hole(range.file_offset + kMiB, 10);
  arena.move_to_fresh_pages(range);
  std::vector<std::byte> read(data.size());
  copy_to_host(arena, read.data(), address + kMiB, read.size());
  std::_Exit(is_data && read == data ? 0 : 1);
}

TEST(ArenaDeathTest, KeepsDataIfKernelCannotFindHoles) {
  EXPECT_EXIT(move_without_seeking(), testing::ExitedWithCode(0), "");
}

TEST(ArenaView, SpansAcrossWindowsAreContiguous) {
  Arena arena(base_address(0), 1ull << 30);
  const std::uint64_t border = ArenaView::kWindowBytes;
  const DeviceAddress address = arena.allocate(2 * border);
  ASSERT_LT(arena.file_offset(address), border - 1000);
  ArenaView& view = *arena.view();
  std::memset(view.at(border - 1000), 5, 2000);
  std::vector<unsigned char> read(2000);
  copy_to_host(arena, read.data(), address + border - 1000 - arena.file_offset(address),
               read.size());
  EXPECT_EQ(read, std::vector<unsigned char>(2000, 5));
}

TEST(ArenaView, PopulatingAllocatesOnlyTheRange) {
  Arena arena(base_address(0), 64 * kMiB);
  ArenaView& view = *arena.view();
  EXPECT_FALSE(view.populated(8192, 4096));
  view.populate(8192, 12288, true);
  EXPECT_TRUE(view.populated(8192, 12288));
  EXPECT_FALSE(view.populated(8192, 16384));
  EXPECT_EQ(view.content(0, 8192), Content::hole);
  EXPECT_EQ(view.content(0, 16384), Content::mixed);
  EXPECT_EQ(view.content(8192, 4096), Content::data);
  EXPECT_TRUE(view.is_hole(0, 8192));
  EXPECT_FALSE(view.is_hole(0, 8193));
  EXPECT_FALSE(view.is_hole(12288, 1 << 20));
  EXPECT_TRUE(view.is_hole(20480, 1 << 20));
  view.forget(8192, 4096);
  EXPECT_FALSE(view.populated(8192, 1));
}

// Records whether the pages are free when the watcher is notified.
class ContentWatcher final : public PageWatcher {
 public:
  explicit ContentWatcher(Arena& arena) : arena_(arena) { arena_.watch(*this); }
  ~ContentWatcher() override { arena_.unwatch(*this); }
  ContentWatcher(const ContentWatcher&) = delete;
  ContentWatcher& operator=(const ContentWatcher&) = delete;

  void pages_freed(std::uint64_t file_offset, std::uint64_t bytes) noexcept override {
    notified_bytes = bytes;
    empty = arena_.view()->content(file_offset, bytes) == Content::hole;
  }

  std::uint64_t notified_bytes = 0;
  bool empty = false;

 private:
  Arena& arena_;
};

// The pages must be freed before a watcher is notified. Otherwise a user of neighbouring memory
// could map the old pages after the notification.
TEST(Arena, FreesPagesBeforeNotifyingWatchers) {
  Arena arena(base_address(0), 16 * kMiB);
  ContentWatcher watcher(arena);
  const DeviceAddress address = arena.allocate(kMiB);
  fill(arena, address, 7, 1, kMiB);
  const MemoryRange range = arena.resolve(address, kMiB, "memory");
  ASSERT_EQ(arena.view()->content(range.file_offset, kMiB), Content::data);
  arena.release(address, [] { return true; });
  EXPECT_GE(watcher.notified_bytes, kMiB);
  EXPECT_TRUE(watcher.empty);
}

TEST(Copy, RefusesBadHostAddresses) {
  Arena arena(base_address(0), 4 * kMiB);
  const DeviceAddress address = arena.allocate(4096);
  void* const nowhere = reinterpret_cast<void*>(8);
  EXPECT_THROW(copy_to_device(arena, address, nowhere, 16), Error);
  EXPECT_THROW(copy_to_host(arena, nowhere, address, 16), Error);
}

TEST(Copy, CopiesOverlappingRangesInBothDirections) {
  Arena arena(base_address(0), 16 * kMiB);
  const std::size_t bytes = 3 * kMiB + 17;
  const DeviceAddress address = arena.allocate(bytes + 100'000);
  std::vector<unsigned char> pattern(bytes);
  for (std::size_t at = 0; at < bytes; ++at)
    pattern[at] = static_cast<unsigned char>(at * 7 + at / 251);
  for (const auto& [from, to] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 100'000}, {100'000, 0}}) {
    copy_to_device(arena, address + from, pattern.data(), bytes);
    copy_on_device(arena, address + to, address + from, bytes);
    std::vector<unsigned char> read(bytes);
    copy_to_host(arena, read.data(), address + to, bytes);
    EXPECT_EQ(read, pattern);
  }
}

// Mapped pages are copied directly, unmapped pages through a bounce buffer.
TEST(Copy, CopiesMappedAndUnmappedPagesOnDevice) {
  Arena arena(base_address(0), 16 * kMiB);
  const std::size_t bytes = 3 * kMiB + 17;
  const DeviceAddress from = arena.allocate(bytes);
  const DeviceAddress to = arena.allocate(bytes);
  std::vector<unsigned char> pattern(bytes);
  for (std::size_t at = 0; at < bytes; ++at)
    pattern[at] = static_cast<unsigned char>(at * 13 + at / 241);
  copy_to_device(arena, from, pattern.data(), bytes);
  for (const std::uint64_t mapped : {std::uint64_t{0}, kMiB + kMiB / 2, bytes}) {
    if (mapped > 0) arena.view()->populate(arena.file_offset(from), mapped, false);
    fill(arena, to, 0xA5, 1, bytes);
    copy_on_device(arena, to, from, bytes);
    std::vector<unsigned char> read(bytes);
    copy_to_host(arena, read.data(), to, bytes);
    EXPECT_EQ(read, pattern) << mapped;
  }
}

TEST(Copy, FillsRepeatThePattern) {
  Arena arena(base_address(0), 4 * kMiB);
  const DeviceAddress address = arena.allocate(kMiB);
  fill(arena, address + 2, 0xabcd, 2, 200'002);
  std::vector<std::uint16_t> read(100'003);
  copy_to_host(arena, read.data(), address, read.size() * 2);
  EXPECT_EQ(read.front(), 0);
  for (std::size_t at = 1; at < 100'002; ++at) ASSERT_EQ(read[at], 0xabcd) << at;
  EXPECT_EQ(read.back(), 0);
}

}  // namespace
}  // namespace hccl::device
