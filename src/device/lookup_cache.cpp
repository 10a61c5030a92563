// SPDX-License-Identifier: Apache-2.0
#include "device/lookup_cache.h"

#include <atomic>
#include <cstddef>

namespace hccl::device {
namespace {

struct CachedEntry {
  std::uint64_t cache = 0;
  std::uint64_t version = 0;
  LookupCache::Entry entry;
};
constexpr std::size_t kCachedEntries = 4;
thread_local CachedEntry cached_entries[kCachedEntries];
thread_local std::size_t next_cached_entry = 0;

std::uint64_t next_cache_number() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1);
}

}  // namespace

LookupCache::LookupCache() noexcept : number_(next_cache_number()) {}

const LookupCache::Entry* LookupCache::find(std::uint64_t version,
                                            std::uint64_t offset) const noexcept {
  for (const auto& [cache, inserted, entry] : cached_entries) {
    if (cache == number_ && inserted == version && offset >= entry.first && offset < entry.end)
      return &entry;
  }
  return nullptr;
}

void LookupCache::insert(std::uint64_t version, const Entry& entry) const noexcept {
  cached_entries[next_cached_entry++ % kCachedEntries] = {number_, version, entry};
}

}  // namespace hccl::device
