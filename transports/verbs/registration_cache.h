// SPDX-License-Identifier: Apache-2.0
// Memory of the program that the device may access: registered at first use in granules of 2 MiB,
// kept for the next, and given up when its pages go or when too much is registered: by whichever
// cache of the process, for the limit is that of all of them.
#pragma once

#include "transport/region.h"
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

// Returns how many bytes may be registered at all: the limit of locked memory, less what the
// streams need.
[[nodiscard]] std::uint64_t registration_budget();

// Any thread.
class RegistrationCache {
  struct Granule {
    std::shared_ptr<Registration> registration;
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;  // larger than those that were used before
  };

 public:
  static constexpr std::uint64_t kGranuleBytes = std::uint64_t{2} << 20;

  explicit RegistrationCache(std::shared_ptr<Device> device,
                             std::uint64_t budget = registration_budget());
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  // Registered memory, at least as long as this exists. Its pages are those that were there when
  // it was registered, whatever becomes of the range.
  struct Lease {
    std::shared_ptr<Registration> registration;
    std::size_t bytes = 0;  // registered bytes, counted from the start of the requested range
  };

  // Ranges in the region may be registered from now on.
  void learn(const transport::Region& region);
  // The pages of the region go: registrations of them serve nobody any more.
  void invalidate(const transport::Region& region);
  // The first part of the memory, as far as it lies in one granule; nothing where it may not be
  // registered or there is no room for it.
  [[nodiscard]] std::optional<Lease> lease(std::span<const std::byte> memory);

  // Memory of the streams' own, for which what is kept must give way. Throws
  // Error(hcclSystemError) that says which limit to raise.
  [[nodiscard]] Registration register_always(std::span<std::byte> memory, bool remote);

  // Bytes that this one has registered and keeps.
  [[nodiscard]] std::uint64_t registered() const;

 private:
  // The granule's number is that in its file. The address distinguishes granules that two regions
  // share, or that are in no file.
  struct Key {
    int file = -1;
    std::uint64_t granule = 0;
    std::byte* address = nullptr;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the operator for a null pointer
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // The first entry was used last.
  using Entry = std::pair<Key, Granule>;
  using Entries = std::list<Entry>;

  // All caches of the process.
  struct Process {
    std::mutex mutex;
    std::vector<RegistrationCache*> caches;
    std::uint64_t registered = 0;
    std::uint64_t uses = 0;
  };
  [[nodiscard]] static Process& process();

  // All of these with the process's mutex held.
  [[nodiscard]] const transport::Region* region_of(const std::byte* address) const;
  [[nodiscard]] Granule* find(const Key& key);
  [[nodiscard]] std::optional<Registration> register_somehow(std::span<std::byte> memory,
                                                             bool remote);
  [[nodiscard]] Granule* add(const Key& key, std::size_t bytes);
  [[nodiscard]] static bool evict_one();
  [[nodiscard]] const Entry* oldest_unused() const;
  void drop(std::map<Key, Entries::iterator>::iterator found);

  const std::shared_ptr<Device> device_;
  const std::uint64_t budget_;                             // of the process
  std::map<const std::byte*, transport::Region> regions_;  // by address
  Entries entries_;
  std::map<Key, Entries::iterator> by_key_;
  std::uint64_t registered_ = 0;
  bool told_ = false;  // that there was no room
};

}  // namespace hccl::verbs
