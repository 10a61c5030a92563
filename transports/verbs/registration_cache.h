// SPDX-License-Identifier: Apache-2.0
// Caches the registrations of the program's memory. Memory is registered at first use in granules
// of 2 MiB. A granule stays registered until its pages are freed, other memory needs its share of
// the budget, or the cache is destroyed. The locked-memory limit applies to the process, so all
// caches of the process share one budget.
#pragma once

#include "transport/transport.h"
#include "verbs/device.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hccl::verbs {

// Returns the number of bytes that all caches together may keep registered: three quarters of the
// locked-memory limit, or the type's maximum if no limit applies.
[[nodiscard]] std::uint64_t registration_budget();

// Thread safety: any thread.
class RegistrationCache {
  struct Granule {
    std::shared_ptr<Registration> registration;
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;  // the stamp of the last use; later uses have greater stamps
  };

 public:
  static constexpr std::uint64_t kGranuleBytes = std::uint64_t{2} << 20;
  // Registering fewer bytes takes longer than copying them.
  static constexpr std::size_t kLeastExact = std::size_t{256} << 10;

  explicit RegistrationCache(std::shared_ptr<RdmaDevice> device,
                             std::uint64_t budget = registration_budget());
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  // Memory that stays registered while the lease exists. The registration refers to the pages that
  // were mapped when the memory was registered, even if the address range is remapped later.
  struct Lease {
    std::shared_ptr<Registration> registration;
    std::size_t bytes = 0;  // registered bytes, counted from the start of the requested range
  };

  // Permits the registration of memory within the region.
  void add_region(const transport::Region& region);
  // Drops the cached registrations of the region, whose pages have been freed.
  void invalidate(const transport::Region& region);
  // Leases `memory` up to the end of the granule in which it begins, and registers that granule if
  // necessary. Returns nothing if the memory is in no known region or if the granule cannot be
  // registered.
  [[nodiscard]] std::optional<Lease> lease(std::span<const std::byte> memory);

  // Leases memory for an advert. Like lease() if the device confines peers to windows. Otherwise
  // registers the beginning of this memory, at least kLeastExact and at most kGranuleBytes bytes,
  // until the lease ends, and does not count it towards the budget. Returns nothing if that is
  // impossible.
  [[nodiscard]] std::optional<Lease> lease_for_peer(std::span<std::byte> memory);

  // Registers memory that belongs to the streams, and evicts cached registrations if necessary.
  // Throws Error(hcclSystemError) with the text of memlock_advice().
  [[nodiscard]] Registration register_always(std::span<std::byte> memory, PeerAccess peers);

  // Returns the number of bytes that this cache has registered.
  [[nodiscard]] std::uint64_t registered() const;

 private:
  // Granules are numbered from the start of the file. `address` distinguishes mappings of the same
  // granule in two regions, and granules that no file backs.
  struct Key {
    int file = -1;
    std::uint64_t granule = 0;
    std::byte* address = nullptr;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 mistakes the operator for a null pointer
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // The most recently used entry is the first.
  using Entry = std::pair<Key, Granule>;
  using Entries = std::list<Entry>;

  // The state that all caches of the process share.
  struct AllCaches {
    std::mutex mutex;
    std::vector<RegistrationCache*> caches;
    std::uint64_t registered = 0;
    std::uint64_t uses = 0;
  };
  [[nodiscard]] static AllCaches& all_caches();

  // The functions below require that the caller holds the mutex of all_caches().
  [[nodiscard]] const transport::Region* region_of(const std::byte* address) const;
  [[nodiscard]] Granule* find(const Key& key);
  [[nodiscard]] std::optional<Registration> register_with_eviction(std::span<std::byte> memory,
                                                                   PeerAccess peers);
  [[nodiscard]] Granule* add(const Key& key, std::size_t bytes);
  [[nodiscard]] static bool evict_one();
  [[nodiscard]] const Entry* oldest_unused() const;
  void drop(std::map<Key, Entries::iterator>::iterator found);

  const std::shared_ptr<RdmaDevice> device_;
  const std::uint64_t budget_;                             // for all caches together
  std::map<const std::byte*, transport::Region> regions_;  // by address
  Entries entries_;
  std::map<Key, Entries::iterator> by_key_;
  std::uint64_t registered_ = 0;
  bool reported_full_ = false;  // whether the shortage has been logged
};

}  // namespace hccl::verbs
