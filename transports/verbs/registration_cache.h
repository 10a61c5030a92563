// SPDX-License-Identifier: Apache-2.0
// Registrations of the program's memory. Memory is registered at first use in granules of 2 MiB and
// stays registered until its pages are freed or the budget is exhausted. The limit of locked memory
// applies to the process, so all its caches share one budget.
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

// Returns how many bytes all caches may register: the limit of locked memory, less a quarter for
// the streams.
[[nodiscard]] std::uint64_t registration_budget();

// Thread safety: any thread.
class RegistrationCache {
  struct Granule {
    std::shared_ptr<Registration> registration;
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;  // a stamp that grows with each use
  };

 public:
  static constexpr std::uint64_t kGranuleBytes = std::uint64_t{2} << 20;

  explicit RegistrationCache(std::shared_ptr<RdmaDevice> device,
                             std::uint64_t budget = registration_budget());
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  // Registered memory, valid while the lease exists. It refers to the pages at the time of
  // registration, even if the address range is mapped anew.
  struct Lease {
    std::shared_ptr<Registration> registration;
    std::size_t bytes = 0;  // registered bytes, counted from the start of the requested range
  };

  // Permits registration of the region's ranges.
  void add_region(const transport::Region& region);
  // Drops the registrations of the region, whose pages are about to be freed.
  void invalidate(const transport::Region& region);
  // Leases the part of the memory that lies in its first granule. Returns nothing if the memory is
  // in no known region or the budget has no room.
  [[nodiscard]] std::optional<Lease> lease(std::span<const std::byte> memory);

  // Registers memory of the streams themselves, and evicts cached registrations if necessary.
  // Throws Error(hcclSystemError), which names the limit to raise.
  [[nodiscard]] Registration register_always(std::span<std::byte> memory, bool remote);

  // Returns the number of bytes that this cache keeps registered.
  [[nodiscard]] std::uint64_t registered() const;

 private:
  // `granule` counts from the start of the file. The address distinguishes granules that two
  // regions share or that no file backs.
  struct Key {
    int file = -1;
    std::uint64_t granule = 0;
    std::byte* address = nullptr;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the operator for a null pointer
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // Most recently used first.
  using Entry = std::pair<Key, Granule>;
  using Entries = std::list<Entry>;

  // All caches of the process.
  struct AllCaches {
    std::mutex mutex;
    std::vector<RegistrationCache*> caches;
    std::uint64_t registered = 0;
    std::uint64_t uses = 0;
  };
  [[nodiscard]] static AllCaches& all_caches();

  // Call these with the mutex of all_caches() held.
  [[nodiscard]] const transport::Region* region_of(const std::byte* address) const;
  [[nodiscard]] Granule* find(const Key& key);
  [[nodiscard]] std::optional<Registration> register_with_eviction(std::span<std::byte> memory,
                                                                   bool remote);
  [[nodiscard]] Granule* add(const Key& key, std::size_t bytes);
  [[nodiscard]] static bool evict_one();
  [[nodiscard]] const Entry* oldest_unused() const;
  void drop(std::map<Key, Entries::iterator>::iterator found);

  const std::shared_ptr<RdmaDevice> device_;
  const std::uint64_t budget_;                             // of all caches
  std::map<const std::byte*, transport::Region> regions_;  // by address
  Entries entries_;
  std::map<Key, Entries::iterator> by_key_;
  std::uint64_t registered_ = 0;
  bool reported_full_ = false;  // whether the shortage has been logged
};

}  // namespace hccl::verbs
