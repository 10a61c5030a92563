// SPDX-License-Identifier: Apache-2.0
#include "verbs/registration_cache.h"

#include "base/error.h"
#include "base/log.h"
#include "verbs/verbs_errors.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::verbs {
namespace {

// Returns whether the process has CAP_IPC_LOCK.
bool may_exceed_locked_memory_limit() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return false;
  return (sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

}  // namespace

// Leaves a quarter of the limit for the streams' rings and for other users of locked memory.
std::uint64_t registration_budget() {
  const std::uint64_t limit = locked_memory_limit();
  if (limit == RLIM_INFINITY || may_exceed_locked_memory_limit())
    return std::numeric_limits<std::uint64_t>::max();
  return limit / 4 * 3;
}

// Never destroyed, because programs may destroy communicators in their static destructors.
RegistrationCache::AllCaches& RegistrationCache::all_caches() {
  static AllCaches& all = *new AllCaches;
  return all;
}

RegistrationCache::RegistrationCache(std::shared_ptr<RdmaDevice> device, std::uint64_t budget)
    : device_(std::move(device)), budget_(budget) {
  const std::lock_guard lock(all_caches().mutex);
  all_caches().caches.push_back(this);
}

RegistrationCache::~RegistrationCache() {
  const std::lock_guard lock(all_caches().mutex);
  std::erase(all_caches().caches, this);
  while (!by_key_.empty())
    drop(by_key_.begin());  // deregister before other caches can use the budget
}

void RegistrationCache::add_region(const transport::Region& region) {
  const std::lock_guard lock(all_caches().mutex);
  regions_[region.address] = region;
}

const transport::Region* RegistrationCache::region_of(const std::byte* address) const {
  auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  const transport::Region& region = std::prev(after)->second;
  return address < region.address + region.bytes ? &region : nullptr;
}

RegistrationCache::Granule* RegistrationCache::find(const Key& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  found->second->second.used = ++all_caches().uses;
  return &found->second->second;
}

void RegistrationCache::drop(std::map<Key, Entries::iterator>::iterator found) {
  registered_ -= found->second->second.bytes;
  all_caches().registered -= found->second->second.bytes;
  entries_.erase(found->second);
  by_key_.erase(found);
}

const RegistrationCache::Entry* RegistrationCache::oldest_unused() const {
  const auto unused = [](const Entry& entry) { return entry.second.registration.use_count() == 1; };
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(), unused);
  return found == entries_.rend() ? nullptr : &*found;
}

// Evicts the least recently used granule of all caches that is not leased. Returns false if there
// is none.
bool RegistrationCache::evict_one() {
  RegistrationCache* owner = nullptr;
  const Entry* oldest = nullptr;
  for (RegistrationCache* const cache : all_caches().caches) {
    const Entry* const found = cache->oldest_unused();
    if (found == nullptr || (oldest != nullptr && oldest->second.used < found->second.used))
      continue;
    owner = cache;
    oldest = found;
  }
  if (oldest == nullptr) return false;
  owner->drop(owner->by_key_.find(oldest->first));
  return true;
}

// Evicts granules until the registration succeeds or nothing is left to evict. Even a registration
// within the budget may fail, because other code in this process may also have locked memory.
std::optional<Registration> RegistrationCache::register_with_eviction(std::span<std::byte> memory,
                                                                      PeerAccess peers) {
  std::optional<Registration> made = device_->try_register(memory, peers);
  while (!made && evict_one()) made = device_->try_register(memory, peers);
  return made;
}

Registration RegistrationCache::register_always(std::span<std::byte> memory, PeerAccess peers) {
  const std::lock_guard lock(all_caches().mutex);
  auto made = register_with_eviction(memory, peers);
  if (made) return std::move(*made);
  throw Error(hcclSystemError, memlock_advice(memory.size(), errno, device_->port().device));
}

RegistrationCache::Granule* RegistrationCache::add(const Key& key, std::size_t bytes) {
  const std::span<std::byte> memory(key.address, bytes);
  while (all_caches().registered + memory.size() > budget_) {
    if (!evict_one()) return nullptr;
  }
  std::optional<Registration> made = register_with_eviction(
      memory, device_->confines_windows() ? PeerAccess::window : PeerAccess::none);
  if (!made) {
    if (!std::exchange(reported_full_, true)) {
      log(LogLevel::info, "verbs", "messages are copied through ring buffers: ",
          memlock_advice(memory.size(), errno, device_->port().device));
    }
    return nullptr;
  }
  entries_.push_front(
      {key,
       {std::make_shared<Registration>(std::move(*made)), memory.size(), ++all_caches().uses}});
  by_key_[key] = entries_.begin();
  registered_ += memory.size();
  all_caches().registered += memory.size();
  return &entries_.front().second;
}

std::optional<RegistrationCache::Lease> RegistrationCache::lease(
    std::span<const std::byte> memory) {
  const std::lock_guard lock(all_caches().mutex);
  const transport::Region* const region = region_of(memory.data());
  if (region == nullptr) return std::nullopt;
  const auto in_region = static_cast<std::uint64_t>(memory.data() - region->address);
  // Clip the granule to the region.
  const std::uint64_t number = (region->offset + in_region) / kGranuleBytes;
  const std::uint64_t begin = std::max(number * kGranuleBytes, region->offset);
  const std::uint64_t end = std::min((number + 1) * kGranuleBytes, region->offset + region->bytes);
  const Key key{region->fd, number, region->address + (begin - region->offset)};
  Granule* granule = find(key);
  if (granule == nullptr) granule = add(key, static_cast<std::size_t>(end - begin));
  if (granule == nullptr) return std::nullopt;
  const std::uint64_t rest = end - (region->offset + in_region);
  return Lease{granule->registration,
               static_cast<std::size_t>(std::min<std::uint64_t>(rest, memory.size()))};
}

std::optional<RegistrationCache::Lease> RegistrationCache::lease_for_peer(
    std::span<std::byte> memory) {
  if (device_->confines_windows()) return lease(memory);
  const std::lock_guard lock(all_caches().mutex);
  const transport::Region* const region = region_of(memory.data());
  if (region == nullptr) return std::nullopt;
  const auto rest = static_cast<std::size_t>(region->address + region->bytes - memory.data());
  memory = memory.first(std::min<std::size_t>({memory.size(), rest, kGranuleBytes}));
  if (memory.size() < kLeastExact) return std::nullopt;
  auto made = device_->try_register(memory, PeerAccess::key);
  if (!made) return std::nullopt;
  return Lease{std::make_shared<Registration>(std::move(*made)), memory.size()};
}

void RegistrationCache::invalidate(const transport::Region& region) {
  const std::lock_guard lock(all_caches().mutex);
  auto found = by_key_.lower_bound({region.fd, region.offset / kGranuleBytes, nullptr});
  while (found != by_key_.end() && found->first.file == region.fd &&
         found->first.granule * kGranuleBytes < region.offset + region.bytes)
    drop(found++);
}

std::uint64_t RegistrationCache::registered() const {
  const std::lock_guard lock(all_caches().mutex);
  return registered_;
}

}  // namespace hccl::verbs
