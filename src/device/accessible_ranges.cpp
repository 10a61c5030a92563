// SPDX-License-Identifier: Apache-2.0
// Populates pages to find out whether they can be accessed: madvise() returns an error where a load
// or store would raise a signal.
#include "device/accessible_ranges.h"

#include "device/address.h"
#include "device/populate.h"

#include <algorithm>

#include <sys/mman.h>

namespace hccl::device {
namespace {

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// Returns whether all pages are mapped and the first and last pages allow the access.
// msync(MS_ASYNC) fails with ENOMEM if a page is not mapped, and has no other effect.
bool still_admits(std::uint64_t begin, std::uint64_t end, bool write) {
  const std::uint64_t page = system_page_bytes();
  return msync(pointer(begin), end - begin, MS_ASYNC) == 0 &&
         populate_pages(pointer(begin), page, write) &&
         (end - begin == page || populate_pages(pointer(end - page), page, write));
}

}  // namespace

AccessibleRanges& AccessibleRanges::of_this_thread(HostAccess access) {
  thread_local AccessibleRanges readable(HostAccess::read);
  thread_local AccessibleRanges writable(HostAccess::write);
  return access == HostAccess::write ? writable : readable;
}

AccessibleRanges::Interval AccessibleRanges::pages_of(std::uint64_t address, std::uint64_t bytes) {
  return {address / system_page_bytes() * system_page_bytes(),
          round_up(address + bytes, system_page_bytes())};
}

void AccessibleRanges::recheck(std::uint64_t address, std::uint64_t bytes) {
  const Interval pages = pages_of(address, bytes);
  for (std::size_t at = first_not_before(pages.begin);
       at < count_ && ranges_[at].begin < pages.end;) {
    const std::uint64_t begin = std::max(ranges_[at].begin, pages.begin);
    const std::uint64_t end = std::min(ranges_[at].end, pages.end);
    if (begin == end || still_admits(begin, end, access_ == HostAccess::write)) {
      ++at;
    } else {
      erase(at, at + 1);
    }
  }
}

bool AccessibleRanges::admits(std::uint64_t address, std::uint64_t bytes) {
  const Interval pages = pages_of(address, bytes);
  const std::size_t at = first_not_before(pages.begin);
  if (at < count_ && ranges_[at].begin <= pages.begin && pages.end <= ranges_[at].end) return true;
  if (!populate_pages(pointer(pages.begin), pages.end - pages.begin, access_ == HostAccess::write))
    return false;
  insert(pages);
  return true;
}

std::size_t AccessibleRanges::first_not_before(std::uint64_t address) const {
  const auto* const found =
      std::partition_point(ranges_.data(), ranges_.data() + count_,
                           [&](const Interval& range) { return range.end < address; });
  return static_cast<std::size_t>(found - ranges_.data());
}

void AccessibleRanges::insert(Interval range) {
  if (count_ == kMaxRanges) count_ = 0;
  const std::size_t first = first_not_before(range.begin);
  std::size_t last = first;
  for (; last < count_ && ranges_[last].begin <= range.end; ++last) {
    range.begin = std::min(range.begin, ranges_[last].begin);
    range.end = std::max(range.end, ranges_[last].end);
  }
  if (last == first) {
    std::copy_backward(ranges_.data() + first, ranges_.data() + count_,
                       ranges_.data() + count_ + 1);
    ++count_;
  } else {
    erase(first + 1, last);
  }
  ranges_[first] = range;
}

void AccessibleRanges::erase(std::size_t first, std::size_t last) {
  std::copy(ranges_.data() + last, ranges_.data() + count_, ranges_.data() + first);
  count_ -= last - first;
}

}  // namespace hccl::device
