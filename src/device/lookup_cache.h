// SPDX-License-Identifier: Apache-2.0
// A per-thread cache of recently looked-up arena allocations, because collectives resolve the same
// few buffers again and again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hccl::device {

class LookupCache {
 public:
  // The part of an allocation that the program requested, as offsets in the arena.
  struct Entry {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::uint64_t file_offset = 0;  // of `first`
    std::uint32_t serial = 0;       // serial number of the allocation
    bool live = false;
  };

  LookupCache() noexcept;

  // Returns the calling thread's entry that contains `offset`, or null. Ignores entries of other
  // arenas, and entries that were inserted for another `version` of the allocations.
  [[nodiscard]] const Entry* find(std::uint64_t version, std::uint64_t offset) const noexcept {
    const CachedEntry* const first = own_entries();
    for (const CachedEntry* cached = first; cached != first + kEntries; ++cached) {
      const Entry& entry = cached->entry;
      if (cached->cache == number_ && cached->version == version && offset >= entry.first &&
          offset < entry.end)
        return &entry;
    }
    return nullptr;
  }
  // Inserts the entry in place of the thread's oldest entry.
  void insert(std::uint64_t version, const Entry& entry) const noexcept;

 private:
  struct CachedEntry {
    std::uint64_t cache = 0;
    std::uint64_t version = 0;
    Entry entry;
  };
  static constexpr std::size_t kEntries = 4;
  // Returns the calling thread's entries. Not inline, because in a shared library, an inlined loop
  // would look up the address of thread-local memory for each entry.
  [[nodiscard, gnu::noinline]] static CachedEntry* own_entries() noexcept;

  const std::uint64_t number_;  // identifies the arena in the threads' entries
};

}  // namespace hccl::device
