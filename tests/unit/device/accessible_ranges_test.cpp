// SPDX-License-Identifier: Apache-2.0
// Tests the cache of host memory ranges that have been found accessible.
#include "device/accessible_ranges.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hccl::device {
namespace {

const std::uint64_t kPage = system_page_bytes();

// Anonymous pages between two inaccessible ones.
class Pages {
 public:
  explicit Pages(std::uint64_t count)
      : bytes_((count + 2) * kPage),
        base_(static_cast<std::byte*>(
            mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(base_ + kPage, count * kPage, PROT_READ | PROT_WRITE);
  }
  ~Pages() { munmap(base_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] std::byte* page(std::uint64_t index) const { return base_ + (index + 1) * kPage; }
  [[nodiscard]] std::uint64_t address(std::uint64_t index) const {
    return reinterpret_cast<std::uint64_t>(page(index));
  }

 private:
  std::uint64_t bytes_;
  std::byte* base_;
};

// Rechecks the range, as before the first access to a buffer. Returns true if the range is
// admitted.
bool admits_now(AccessibleRanges& ranges, std::uint64_t address, std::uint64_t bytes) {
  ranges.recheck(address, bytes);
  return ranges.admits(address, bytes);
}

TEST(AccessibleRanges, AdmitsOnlyMappedPages) {
  const Pages pages(8);
  for (const HostAccess access : {HostAccess::read, HostAccess::write}) {
    AccessibleRanges ranges(access);
    EXPECT_TRUE(ranges.admits(pages.address(0), 8 * kPage));
    EXPECT_TRUE(ranges.admits(pages.address(3) + 17, kPage));
    EXPECT_FALSE(ranges.admits(pages.address(7), kPage + 1));
    EXPECT_FALSE(ranges.admits(pages.address(0) - 1, 2));
    EXPECT_FALSE(ranges.admits(0, 1));
  }
}

TEST(AccessibleRanges, DistinguishesReadingFromWriting) {
  const Pages pages(4);
  mprotect(pages.page(2), kPage, PROT_READ);
  AccessibleRanges readable(HostAccess::read);
  AccessibleRanges writable(HostAccess::write);
  EXPECT_TRUE(readable.admits(pages.address(0), 4 * kPage));
  EXPECT_FALSE(writable.admits(pages.address(0), 4 * kPage));
  EXPECT_TRUE(writable.admits(pages.address(0), 2 * kPage));
  EXPECT_TRUE(writable.admits(pages.address(3), kPage));
}

TEST(AccessibleRanges, DetectsHoleInKnownRange) {
  const Pages pages(16);
  AccessibleRanges ranges(HostAccess::read);
  ASSERT_TRUE(ranges.admits(pages.address(0), 16 * kPage));
  munmap(pages.page(8), kPage);
  EXPECT_TRUE(ranges.admits(pages.address(0), 16 * kPage));
  EXPECT_FALSE(admits_now(ranges, pages.address(0), 16 * kPage));
  EXPECT_FALSE(ranges.admits(pages.address(8), 1));
  EXPECT_TRUE(ranges.admits(pages.address(9), 7 * kPage));
}

// Ranges that are admitted in slices must merge into one. A recheck tests the protection of only
// the first and the last page, so the merged range must stay admitted when pages in the middle
// become read-only.
TEST(AccessibleRanges, RemembersRangesAdmittedInSlices) {
  const Pages pages(16);
  AccessibleRanges ranges(HostAccess::write);
  for (const std::uint64_t first : {8u, 0u, 12u, 4u})
    ASSERT_TRUE(ranges.admits(pages.address(first), 4 * kPage));
  mprotect(pages.page(1), 14 * kPage, PROT_READ);
  EXPECT_TRUE(admits_now(ranges, pages.address(0), 16 * kPage));
  EXPECT_FALSE(AccessibleRanges(HostAccess::write).admits(pages.address(0), 16 * kPage));
}

TEST(AccessibleRanges, DetectsProtectionOfKnownRange) {
  for (const std::uint64_t count : {1u, 2u, 16u}) {
    const Pages pages(count);
    AccessibleRanges ranges(HostAccess::write);
    ASSERT_TRUE(ranges.admits(pages.address(0), count * kPage));
    mprotect(pages.page(0), count * kPage, PROT_READ);
    EXPECT_FALSE(admits_now(ranges, pages.address(0), count * kPage));
    mprotect(pages.page(0), count * kPage, PROT_READ | PROT_WRITE);
    EXPECT_TRUE(ranges.admits(pages.address(0), count * kPage));
  }
}

// A program may map a buffer's range again after munmap().
TEST(AccessibleRanges, DetectsRemappingOfKnownRange) {
  const Pages pages(16);
  AccessibleRanges ranges(HostAccess::write);
  ASSERT_TRUE(ranges.admits(pages.address(0), 16 * kPage));
  ASSERT_NE(
      mmap(pages.page(0), 16 * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      MAP_FAILED);
  EXPECT_FALSE(admits_now(ranges, pages.address(0), 16 * kPage));
  EXPECT_TRUE(AccessibleRanges(HostAccess::read).admits(pages.address(0), 16 * kPage));
}

TEST(AccessibleRanges, DetectsTruncationOfKnownFile) {
  const int file = memfd_create("truncated", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(16 * kPage)), 0);
  void* const shown = mmap(nullptr, 16 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(shown, MAP_FAILED);
  const auto address = reinterpret_cast<std::uint64_t>(shown);
  AccessibleRanges ranges(HostAccess::read);
  ASSERT_TRUE(ranges.admits(address, 16 * kPage));
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(8 * kPage)), 0);
  EXPECT_FALSE(admits_now(ranges, address, 16 * kPage));
  EXPECT_TRUE(ranges.admits(address, 8 * kPage));
  munmap(shown, 16 * kPage);
  close(file);
}

// A recheck must cover the part of a known range that overlaps the buffer, and no more.
TEST(AccessibleRanges, RechecksOnlyTheBuffer) {
  const Pages pages(16);
  AccessibleRanges ranges(HostAccess::write);
  ASSERT_TRUE(ranges.admits(pages.address(0), 16 * kPage));
  munmap(pages.page(0), kPage);
  EXPECT_TRUE(admits_now(ranges, pages.address(1), 15 * kPage));
  EXPECT_FALSE(admits_now(ranges, pages.address(0), 2 * kPage));
  EXPECT_TRUE(admits_now(ranges, pages.address(1), 15 * kPage));
}

// Uses more ranges than the cache holds, at random places and of random lengths.
TEST(AccessibleRanges, NeverAdmitsUnmappedPages) {
  constexpr std::uint64_t kPages = 1024;
  const Pages pages(kPages);
  std::vector<bool> mapped(kPages, true);
  std::mt19937 random(4711);
  AccessibleRanges ranges(HostAccess::write);
  for (int round = 0; round < 4000; ++round) {
    const std::uint64_t first = random() % kPages;
    const std::uint64_t count = 1 + random() % std::min<std::uint64_t>(4, kPages - first);
    if (round % 8 == 0) {
      munmap(pages.page(first), kPage);
      mapped[first] = false;
    }
    bool expected = true;
    for (std::uint64_t index = first; index < first + count; ++index)
      expected = expected && mapped[index];
    ASSERT_EQ(admits_now(ranges, pages.address(first), count * kPage), expected)
        << "round " << round;
  }
}

}  // namespace
}  // namespace hccl::device
