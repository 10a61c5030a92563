// SPDX-License-Identifier: Apache-2.0
#include "device/lookup_cache.h"

#include <atomic>
#include <cstddef>

namespace hccl::device {
namespace {

constinit thread_local std::size_t next_cached_entry = 0;

std::uint64_t next_cache_number() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1);
}

}  // namespace

LookupCache::CachedEntry* LookupCache::own_entries() noexcept {
  constinit static thread_local std::array<CachedEntry, kEntries> entries{};
  return entries.data();
}

LookupCache::LookupCache() noexcept : number_(next_cache_number()) {}

void LookupCache::insert(std::uint64_t version, const Entry& entry) const noexcept {
  own_entries()[next_cached_entry++ % kEntries] = {number_, version, entry};
}

}  // namespace hccl::device
