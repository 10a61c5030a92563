// SPDX-License-Identifier: Apache-2.0
// Leases and invalidates memory at random: in one thread, with every result checked, and in many
// threads at once.
#include "fake_memory.h"
#include "ranks.h"
#include "samples.h"
#include "verbs/registration_cache.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

using hccl::test::scaled;
using hccl::test::test_seed;
using transport::Region;
using Lease = RegistrationCache::Lease;

constexpr std::uint64_t kBudget = 4 * kGranule;
constexpr std::size_t kRegionBytes = 6 * kGranule;  // maximum size of a region

// Uses a cache at random. Its regions may begin and end anywhere within a granule of their files.
class RandomUse {
 public:
  explicit RandomUse(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      regions_.at(i) = {space_.at(i * kRegionBytes), 1 + random_() % kRegionBytes,
                        10 + static_cast<int>(i), random_() % (3 * kGranule)};
      cache_.add_region(regions_.at(i));
    }
  }

  void step() {
    switch (random_() % 8) {
      case 0:
        return invalidate();
      case 1:
      case 2:
      case 3:
        return release_one();
      default:
        return lease();
    }
  }
  void release_all() { held_.clear(); }
  void check() const {
    EXPECT_LE(cache_.registered(), kBudget);
    // The cache does not count invalidated registrations, but they exist while leases hold them.
    std::map<std::uint32_t, std::uint64_t> lingering;
    for (const Held& held : held_) {
      if (invalidated_.contains(held.key)) lingering[held.key] = range_of(held.lease).bytes;
    }
    std::uint64_t bytes = cache_.registered();
    for (const auto& entry : lingering) bytes += entry.second;
    EXPECT_EQ(memory_.bytes(), bytes);
  }
  [[nodiscard]] const test::FakeMemory& memory() const { return memory_; }
  [[nodiscard]] int leased() const { return leased_; }
  [[nodiscard]] int refused() const { return refused_; }

 private:
  struct Held {
    Lease lease;
    std::uint32_t key = 0;
    int file = 0;
    std::uint64_t granule = 0;
  };

  [[nodiscard]] test::FakeMemory::Range range_of(const Lease& lease) const {
    const auto range = memory_.with_local_key(lease.registration->local_key());
    EXPECT_TRUE(range) << "the leased memory is not registered";
    return range.value_or(test::FakeMemory::Range{});
  }

  void lease() {
    const Region& region = regions_.at(random_() % regions_.size());
    const std::size_t at = random_() % region.bytes;
    const std::size_t asked = 1 + random_() % (region.bytes - at);
    const std::uint64_t granule = (region.offset + at) / kGranule;
    const std::uint64_t begin = std::max(granule * kGranule, region.offset);
    const std::uint64_t end = std::min((granule + 1) * kGranule, region.offset + region.bytes);
    const auto got = cache_.lease({region.address + at, asked});
    if (!got) return check_refusal(end - begin);
    ++leased_;
    EXPECT_EQ(got->bytes, std::min(asked, end - (region.offset + at)));
    const auto range = range_of(*got);
    EXPECT_EQ(range.address,
              reinterpret_cast<std::uintptr_t>(region.address) + (begin - region.offset));
    EXPECT_EQ(range.bytes, end - begin);
    const std::uint32_t key = got->registration->local_key();
    EXPECT_FALSE(invalidated_.contains(key)) << "the pages of this lease are invalid";
    if (held_.size() < 12) held_.push_back({*got, key, region.fd, granule});
  }
  // Checks that the held registrations leave no room in the budget for `bytes` more bytes.
  void check_refusal(std::uint64_t bytes) {
    ++refused_;
    std::map<std::uint32_t, std::uint64_t> kept;
    for (const Held& held : held_) {
      if (!invalidated_.contains(held.key)) kept[held.key] = range_of(held.lease).bytes;
    }
    for (const auto& entry : kept) bytes += entry.second;
    EXPECT_GT(bytes, kBudget);
  }
  void release_one() {
    if (held_.empty()) return;
    const auto which = static_cast<std::ptrdiff_t>(random_() % held_.size());
    held_.erase(held_.begin() + which);
  }
  void invalidate() {
    const Region& region = regions_.at(random_() % regions_.size());
    const std::uint64_t from = random_() % (8 * kGranule);
    const std::uint64_t bytes = 1 + random_() % (2 * kGranule);
    for (const Held& held : held_) {
      if (held.file == region.fd && held.granule * kGranule < from + bytes &&
          (held.granule + 1) * kGranule > from)
        invalidated_.insert(held.key);
    }
    cache_.invalidate({nullptr, bytes, region.fd, from});
  }

  std::mt19937_64 random_;
  test::FakeMemory memory_;
  test::Reserved space_{3 * kRegionBytes};
  std::array<Region, 3> regions_;
  RegistrationCache cache_{memory_.open(test::v4(10, 77, 0, 1)), kBudget};
  std::vector<Held> held_;
  std::set<std::uint32_t> invalidated_;  // keys of registrations that were held when invalidated
  int leased_ = 0;
  int refused_ = 0;
};

TEST(RegistrationCache, KeepsInvariantsUnderRandomUse) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  int leased = 0;
  int refused = 0;
  for (int round = 0; round < scaled(50) && !testing::Test::HasFailure(); ++round) {
    RandomUse use(seed + static_cast<std::uint64_t>(round));
    for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) {
      use.step();
      use.check();
    }
    use.release_all();
    use.check();
    leased += use.leased();
    refused += use.refused();
  }
  EXPECT_GT(leased, 0);
  EXPECT_GT(refused, 0);
}

// Leases and invalidates memory at random. Runs in several threads at once.
void lease_and_invalidate(RegistrationCache& cache, const test::FakeMemory& memory,
                          const test::Reserved& space, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Lease> held;
  for (int i = 0; i < scaled(20'000); ++i) {
    const std::uint64_t at = random() % kRegionBytes;
    const int what = static_cast<int>(random() % 16);
    if (what == 0) {
      cache.invalidate({nullptr, random() % kGranule, 3, at});
    } else if (what == 1) {
      cache.add_region({space.at(0), kRegionBytes, 3, 0});
    } else if (what == 2) {
      EXPECT_LE(cache.registered(), kBudget);
    } else if (what < 6) {
      held.clear();
    } else if (const auto lease = cache.lease(space.part(at, 1))) {
      const auto range = memory.with_remote_key(lease->registration->remote_key());
      EXPECT_TRUE(range && range->holds(reinterpret_cast<std::uintptr_t>(space.at(at)), 1));
      held.push_back(*lease);
    }
    if (held.size() == 3) held.clear();
  }
}

TEST(RegistrationCache, ServesManyThreads) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  test::FakeMemory memory;
  const test::Reserved space(kRegionBytes);
  {
    RegistrationCache cache(memory.open(test::v4(10, 77, 0, 1)), kBudget);
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < 6; ++i)
      threads.emplace_back([&, i] { lease_and_invalidate(cache, memory, space, seed + i); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(memory.bytes(), cache.registered()) << "only cached registrations may remain";
  }
  EXPECT_EQ(memory.count(), 0U);
  EXPECT_GT(memory.made(), 0);
  EXPECT_EQ(memory.verbs().open_devices, 0);
}

}  // namespace
}  // namespace hccl::verbs
