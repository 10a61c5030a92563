// SPDX-License-Identifier: Apache-2.0
// A per-thread cache of recently looked-up arena allocations, because collectives resolve the same
// few buffers again and again.
#pragma once

#include <array>
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

  // Returns the calling thread's entry that contains `offset`, or null. Ignores entries that were
  // inserted for another `version` of the allocations.
  [[nodiscard]] const Entry* find(std::uint64_t version, std::uint64_t offset) const noexcept {
    for (const auto& [cache, inserted, entry] : cached_entries) {
      if (cache == number_ && inserted == version && offset >= entry.first && offset < entry.end)
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
  static constinit thread_local std::array<CachedEntry, 4> cached_entries;

  const std::uint64_t number_;  // identifies the arena in the threads' entries
};

}  // namespace hccl::device
