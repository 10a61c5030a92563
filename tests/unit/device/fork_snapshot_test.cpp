// SPDX-License-Identifier: Apache-2.0
// Tests a forked child's snapshot of device memory, and the trimming of pages.
#include "base/error.h"
#include "children.h"
#include "device/arena.h"
#include "device/copy.h"
#include "device/kept_ranges.h"
#include "samples.h"

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl::device {
namespace {

using test::start_child;
using test::succeeds;

TEST(KeptRanges, EqualAddedMinusRemovedRanges) {
  constexpr std::size_t kBytes = 200;
  constexpr std::uint64_t kUnit = 8;
  std::mt19937 random(20);
  KeptRanges ranges;
  std::bitset<kBytes> wanted;
  for (int step = 0; step < 3000; ++step) {
    std::uint64_t begin = random() % kBytes;
    std::uint64_t end = random() % (kBytes + 1);
    if (begin > end) std::swap(begin, end);
    const bool add = random() % 2 == 0;
    if (add) {
      ranges.add(begin, end);
    } else {
      ranges.remove(begin, end);
    }
    for (std::uint64_t at = begin; at < end; ++at) wanted[at] = add;
    ASSERT_EQ(ranges.bytes(), wanted.count());
    std::bitset<kBytes> rounded;
    std::bitset<kBytes> visited;
    for (std::uint64_t at = 0; at < kBytes; ++at) {
      for (std::uint64_t unit = 0; wanted[at] && unit < kUnit; ++unit)
        rounded.set(at / kUnit * kUnit + unit);
    }
    std::uint64_t last = 0;
    ranges.for_each_rounded(kUnit, [&](std::uint64_t from, std::uint64_t to) {
      EXPECT_TRUE(from < to && (last == 0 || from > last));
      last = to;
      for (std::uint64_t at = from; at < to; ++at) visited.set(at);
    });
    ASSERT_EQ(visited, rounded);
  }
  ranges.remove(0, kBytes);
  EXPECT_TRUE(ranges.empty());
}

bool all_are(const std::byte* memory, std::uint64_t bytes, unsigned char value) {
  return std::all_of(memory, memory + bytes,
                     [&](std::byte got) { return got == std::byte{value}; });
}

bool is_mapped(const std::byte* memory) {
  unsigned char resident = 0;
  const auto page = reinterpret_cast<std::uint64_t>(memory) / kPageBytes * kPageBytes;
  return mincore(reinterpret_cast<void*>(page), kPageBytes, &resident) == 0;
}

class Fork : public testing::Test {
 protected:
  Arena arena_{base_address(0), 256 * kMiB};
  const std::uint64_t bytes_ = 7 * kMiB + 1000;
  const DeviceAddress address_ = arena_.allocate(bytes_);
  std::byte* const view_ = arena_.host_view(address_, bytes_);
};

TEST_F(Fork, UnmapsMemoryUnlessKept) {
  std::memset(view_, 7, bytes_);
  EXPECT_TRUE(succeeds(start_child([&] { return !is_mapped(view_); })));
  arena_.keep_at_fork(address_, bytes_, true);
  EXPECT_TRUE(succeeds(start_child([&] { return all_are(view_, bytes_, 7); })));
  arena_.keep_at_fork(address_, bytes_, false);
  EXPECT_TRUE(succeeds(start_child([&] { return !is_mapped(view_); })));
}

TEST_F(Fork, GivesEachChildItsOwnSnapshot) {
  arena_.keep_at_fork(address_, bytes_, true);
  std::vector<pid_t> children;
  std::array<int, 2> gate{};
  ASSERT_EQ(pipe(gate.data()), 0);
  for (int child = 0; child < 4; ++child) {
    const auto value = static_cast<unsigned char>(child + 1);
    std::memset(view_, value, bytes_);
    children.push_back(start_child([&] {
      char byte = 0;
      close(gate[1]);
      if (read(gate[0], &byte, 1) != 0)
        return false;  // waits until the parent has overwritten the memory
      const bool kept = all_are(view_, bytes_, value);
      std::memset(view_, 0x80 + value, bytes_);
      return kept && all_are(view_, bytes_, 0x80 + value);
    }));
  }
  std::memset(view_, 0x55, bytes_);
  close(gate[0]);
  close(gate[1]);
  for (const pid_t child : children) EXPECT_TRUE(succeeds(child));
  EXPECT_TRUE(all_are(view_, bytes_, 0x55));
}

TEST_F(Fork, KeepsOnlyPagesOfKeptRanges) {
  std::memset(view_, 7, bytes_);
  const std::uint64_t first = 5 * kPageBytes + 100;
  arena_.keep_at_fork(address_ + first, 10'000, true);
  const DeviceAddress freed = arena_.allocate(kMiB);
  std::byte* const gone = arena_.host_view(freed, kMiB);
  arena_.keep_at_fork(freed, kMiB, true);
  arena_.release(freed, [] { return false; });
  EXPECT_TRUE(succeeds(start_child([&] {
    return all_are(view_ + first, 10'000, 7) && !is_mapped(view_ + first - 2 * kPageBytes) &&
           !is_mapped(view_ + first + 10'000 + kPageBytes) && !is_mapped(gone);
  })));
  EXPECT_THROW(arena_.keep_at_fork(address_, bytes_ + 1, true), Error);
  EXPECT_THROW(arena_.keep_at_fork(freed, 1, true), Error);
}

TEST_F(Fork, LeavesHolesEmptyAndFollowsMovedPages) {
  const DeviceAddress neighbour = arena_.allocate(kPageBytes * 3);
  std::byte* const beside = arena_.host_view(neighbour, kPageBytes * 3);
  std::memset(view_ + 2 * kMiB, 9, 100);
  std::memset(beside, 3, kPageBytes * 3);
  arena_.keep_at_fork(address_, bytes_, true);
  arena_.keep_at_fork(neighbour, kPageBytes * 3, true);
  arena_.move_to_fresh_pages(arena_.resolve(address_, 1, "memory"));
  view_[kMiB] = std::byte{1};
  EXPECT_TRUE(succeeds(start_child([&] {
    unsigned char resident = 0;
    const auto hole = reinterpret_cast<std::uint64_t>(view_ + 5 * kMiB) / kPageBytes * kPageBytes;
    return mincore(reinterpret_cast<void*>(hole), kPageBytes, &resident) == 0 &&
           (resident & 1) == 0 && all_are(view_, kMiB, 0) && view_[kMiB] == std::byte{1} &&
           all_are(view_ + 2 * kMiB, 100, 9) && all_are(beside, kPageBytes * 3, 3);
  })));
  EXPECT_TRUE(arena_.view()->is_hole(arena_.file_offset(address_), kMiB / 2));
}

// Returns true if the system uses huge pages for all memory, regardless of madvise().
bool all_pages_may_be_huge() {
  std::string choice;
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::getline(file, choice);
  return choice.find("[always]") != std::string::npos;
}

TEST(SparseFork, CopiesOnlyPagesWithData) {
  if (all_pages_may_be_huge()) GTEST_SKIP() << "needs huge pages on request only";
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "needs another build: TSan's own thread in the child may map its stack where the "
                  "memory was";
#endif
  constexpr std::uint64_t kBytes = 64 * kMiB;
  Arena arena(base_address(1), kBytes);
  const DeviceAddress sparse = arena.allocate(kBytes);
  std::byte* const shown = arena.host_view(sparse, kBytes);
  for (std::uint64_t at = 0; at < kBytes; at += kHugePageBytes) shown[at] = std::byte{1};
  const auto is_data = [&](std::uint64_t page) {
    return !arena.view()->is_hole(arena.file_offset(sparse) + page * kPageBytes, kPageBytes);
  };
  const std::uint64_t pages = kBytes / kPageBytes;
  std::vector<bool> data(pages);
  for (std::uint64_t page = 0; page < pages; ++page) data[page] = is_data(page);
  arena.keep_at_fork(sparse, kBytes, true);
  EXPECT_TRUE(succeeds(start_child([&] {
    std::vector<unsigned char> resident(pages);
    if (mincore(shown, kBytes, resident.data()) != 0) return false;
    for (std::uint64_t page = 0; page < pages; ++page) {
      if (((resident[page] & 1) != 0) != data[page]) return false;
    }
    return true;
  })));
}

TEST_F(Fork, ChildMayForkAgain) {
  arena_.keep_at_fork(address_, bytes_, true);
  std::memset(view_, 1, bytes_);
  EXPECT_TRUE(succeeds(start_child([&] {
    std::memset(view_, 2, bytes_);
    const pid_t grandchild = start_child([&] {
      const bool kept = all_are(view_, bytes_, 2);
      std::memset(view_, 3, bytes_);
      return kept;
    });
    return succeeds(grandchild) && all_are(view_, bytes_, 2);
  })));
  EXPECT_TRUE(all_are(view_, bytes_, 1));
}

// Several threads fork while another thread allocates and writes memory that the children do not
// read.
TEST_F(Fork, WorksWithManyThreads) {
  arena_.keep_at_fork(address_, bytes_, true);
  std::memset(view_, 6, bytes_);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) {
      const DeviceAddress other = arena_.allocate(kMiB);
      std::byte* const shown = arena_.host_view(other, kMiB);
      arena_.keep_at_fork(other, kMiB, true);
      std::memset(shown, 1, kMiB);
      arena_.release(other, [] { return true; });
    }
  });
  std::atomic<int> good{0};
  std::vector<std::thread> forking;
  forking.reserve(3);
  for (int thread = 0; thread < 3; ++thread) {
    forking.emplace_back([&] {
      for (int round = 0; round < 5; ++round)
        good += succeeds(start_child([&] { return all_are(view_, bytes_, 6); })) ? 1 : 0;
    });
  }
  for (std::thread& thread : forking) thread.join();
  stop = true;
  busy.join();
  EXPECT_EQ(good.load(), 15);
}

TEST_F(Fork, IgnoresReleasedDevices) {
  {
    Arena other(base_address(1), 16 * kMiB);
    const DeviceAddress address = other.allocate(kMiB);
    other.keep_at_fork(address, kMiB, true);
  }
  EXPECT_TRUE(succeeds(start_child([] { return true; })));
}

TEST(Trim, FreesWholePagesAndKeepsTheRest) {
  Arena arena(base_address(0), 16 * kMiB);
  const DeviceAddress address = arena.allocate(kMiB);
  std::byte* const view = arena.host_view(address, kMiB);
  std::memset(view, 7, kMiB);
  ArenaView& memory = *arena.view();
  const Placement before = arena.locate(address);
  memory.populate(before.file_offset, kMiB, true);
  const auto begin = reinterpret_cast<std::uint64_t>(view + 100);
  const std::uint64_t head = round_up(begin, kPageBytes) - begin + 100;
  const std::uint64_t tail = (begin + 500'000) / kPageBytes * kPageBytes - (begin - 100);
  arena.trim(address + 100, 500'000);
  EXPECT_TRUE(memory.is_hole(before.file_offset + head, tail - head));
  EXPECT_FALSE(memory.populated(before.file_offset + head, kPageBytes));
  EXPECT_FALSE(memory.populated(before.file_offset + tail - kPageBytes, kPageBytes));
  EXPECT_TRUE(memory.populated(before.file_offset + tail, kMiB - tail));
  EXPECT_FALSE(arena.is_current(before));
  EXPECT_NE(arena.locate(address).serial, before.serial);
  EXPECT_EQ(arena.file_offset(address), before.file_offset);
  EXPECT_TRUE(all_are(view, head, 7));
  EXPECT_TRUE(all_are(view + head, tail - head, 0));
  EXPECT_TRUE(all_are(view + tail, kMiB - tail, 7));
  EXPECT_THROW(arena.trim(address + 1, kMiB), Error);
  EXPECT_NO_THROW(arena.trim(address, 0));
}

TEST(ArenaView, ForgetsLongerBufferAfterShorterOne) {
  Arena arena(base_address(0), 16 * kMiB);
  ArenaView& view = *arena.view();
  view.populate(0, kMiB, true);
  view.follow(0, kPageBytes, 5);
  EXPECT_TRUE(view.populated(kPageBytes, kMiB - kPageBytes));
  view.follow(0, kMiB, 5);
  EXPECT_FALSE(view.populated(kMiB - kPageBytes, kPageBytes));
  view.populate(0, kMiB, true);
  view.follow(0, kPageBytes, 5);
  view.follow(0, kMiB, 5);
  EXPECT_TRUE(view.populated(0, kMiB));
}

}  // namespace
}  // namespace hccl::device
