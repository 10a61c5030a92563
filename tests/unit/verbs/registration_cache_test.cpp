// SPDX-License-Identifier: Apache-2.0
// Tests when memory is registered and deregistered, with a device that counts registrations.
#include "verbs/registration_cache.h"

#include "fake_memory.h"
#include "samples.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hccl::verbs {
namespace {

using Lease = RegistrationCache::Lease;

constexpr int kFile = 7;

class Cache : public testing::Test {
 protected:
  void SetUp() override { start(3 * kGranule); }
  void TearDown() override {
    cache_.reset();
    EXPECT_EQ(memory_.count(), 0U) << "no registration may remain";
    device_.reset();
    EXPECT_EQ(memory_.domains(), 0);
    EXPECT_EQ(memory_.verbs().open_devices, 0);
  }

  // Replaces the cache with one that has a budget of `budget` bytes.
  void start(std::uint64_t budget) {
    cache_.reset();
    if (!device_) device_ = memory_.open(test::v4(10, 77, 0, 1));
    cache_ = std::make_unique<RegistrationCache>(device_, budget);
  }
  // Adds a region of ten granules.
  void add_all() { cache_->add_region({space_.at(0), kBytes, kFile, 0}); }
  [[nodiscard]] std::optional<Lease> lease(std::uint64_t offset, std::size_t bytes = 4096) {
    return cache_->lease(space_.part(offset, bytes));
  }
  // Returns the memory that is registered under the lease's keys.
  [[nodiscard]] std::optional<test::FakeMemory::Range> range_of(const Lease& lease) const {
    const auto local = memory_.with_local_key(lease.registration->local_key());
    const auto remote = memory_.with_remote_key(lease.registration->remote_key());
    EXPECT_TRUE(local && remote && local->address == remote->address);
    return local;
  }
  // Leases memory at `offset`. Returns whether its granule was registered before.
  [[nodiscard]] bool is_kept(std::uint64_t offset) {
    const int before = memory_.made();
    EXPECT_TRUE(lease(offset));
    return memory_.made() == before;
  }

  static constexpr std::size_t kBytes = 10 * kGranule;

  test::FakeMemory memory_;
  test::Reserved space_{2 * kBytes};
  std::shared_ptr<RdmaDevice> device_;
  std::unique_ptr<RegistrationCache> cache_;
};

TEST_F(Cache, LeasesOnlyKnownRegions) {
  EXPECT_FALSE(lease(0));
  cache_->add_region({space_.at(kGranule), kGranule, kFile, kGranule});
  EXPECT_FALSE(lease(kGranule - 1));
  EXPECT_FALSE(lease(2 * kGranule));
  EXPECT_EQ(memory_.made(), 0);
  EXPECT_TRUE(lease(kGranule));
  EXPECT_TRUE(lease(2 * kGranule - 1));
}

TEST_F(Cache, LeaseEndsWithGranule) {
  add_all();
  const auto whole = lease(kGranule, kGranule);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->bytes, kGranule);
  const auto cut = lease(2 * kGranule - 100, 5000);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->bytes, 100U);
  const auto rest = lease(2 * kGranule, 4900);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->bytes, 4900U);
  EXPECT_NE(rest->registration, cut->registration);
}

TEST_F(Cache, RegistersGranuleOnceForBothDirections) {
  add_all();
  const auto first = lease(kGranule + 5, 10);
  const auto second = lease(2 * kGranule - 5, 5);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->registration, second->registration);
  EXPECT_EQ(memory_.made(), 1);
  EXPECT_EQ(cache_->registered(), kGranule);
  const auto range = range_of(*first);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->address, reinterpret_cast<std::uintptr_t>(space_.at(kGranule)));
  EXPECT_EQ(range->bytes, kGranule);
  EXPECT_EQ(range->access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
      << "peers may write only through windows";
}

// Some devices let a peer write to the whole registration to which its window is open.
TEST_F(Cache, RegistersExactlyWhatOpensToPeer) {
  for (const bool confined : {true, false}) {
    cache_.reset();
    device_.reset();
    memory_.verbs().devices.front().confines_windows = confined;
    start(3 * kGranule);
    add_all();
    constexpr std::size_t kLeast = RegistrationCache::kLeastExact;
    const auto exact = cache_->lease_for_peer(space_.part(kGranule + 5, kLeast));
    ASSERT_TRUE(exact);
    EXPECT_EQ(exact->bytes, kLeast);
    EXPECT_EQ(range_of(*exact).value().bytes, confined ? kGranule : kLeast);
    const auto for_peers = confined ? IBV_ACCESS_MW_BIND : IBV_ACCESS_REMOTE_WRITE;
    EXPECT_EQ(range_of(*exact).value().access, IBV_ACCESS_LOCAL_WRITE | for_peers);
    const auto last = cache_->lease_for_peer(space_.part(kBytes - kLeast, kLeast + 20));
    ASSERT_TRUE(last);
    EXPECT_EQ(last->bytes, kLeast) << "the region ends there";
    EXPECT_EQ(cache_->lease_for_peer(space_.part(0, kLeast - 1)).has_value(), confined)
        << "too short to be registered for one message";
    EXPECT_FALSE(cache_->lease_for_peer(space_.part(kBytes, kLeast))) << "outside of the region";
  }
}

TEST_F(Cache, OpensOnlyAdvertsToPeersWithoutWindows) {
  cache_.reset();
  device_.reset();
  memory_.verbs().devices.front().has_windows = false;
  start(3 * kGranule);
  add_all();
  const auto leased = lease(0);
  ASSERT_TRUE(leased);
  EXPECT_EQ(range_of(*leased).value().access, IBV_ACCESS_LOCAL_WRITE);
  const auto exact = cache_->lease_for_peer(space_.part(5, RegistrationCache::kLeastExact));
  ASSERT_TRUE(exact);
  EXPECT_EQ(range_of(*exact).value().bytes, RegistrationCache::kLeastExact);
  EXPECT_EQ(range_of(*exact).value().access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

TEST_F(Cache, AlignsGranulesToFile) {
  // The region begins in the middle of the file's third granule, and ends in the middle of the
  // file's fifth granule.
  cache_->add_region({space_.at(0), 2 * kGranule, kFile, 2 * kGranule + kMiB});
  const auto first = lease(0, 2 * kGranule);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes, kMiB);
  EXPECT_EQ(range_of(*first)->bytes, kMiB) << "no byte outside the region is registered";
  const auto second = lease(kMiB, 2 * kGranule);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->bytes, kGranule);
  const auto last = lease(kMiB + kGranule, 2 * kGranule);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->bytes, kMiB);
  EXPECT_EQ(range_of(*last)->bytes, kMiB);
  EXPECT_EQ(cache_->registered(), 2 * kGranule);
}

TEST_F(Cache, RegistersSharedGranuleForEachRegion) {
  cache_->add_region({space_.at(0), kMiB, kFile, 0});
  cache_->add_region({space_.at(kBytes), kMiB, kFile, kMiB});
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{kBytes}}) {
    const auto leased = lease(offset, kMiB);
    ASSERT_TRUE(leased);
    EXPECT_EQ(leased->bytes, kMiB);
    EXPECT_TRUE(
        range_of(*leased)->holds(reinterpret_cast<std::uintptr_t>(space_.at(offset)), kMiB));
  }
  cache_->invalidate({nullptr, kGranule, kFile, 0});
  EXPECT_EQ(cache_->registered(), 0U);
}

TEST_F(Cache, IdentifiesMemoryWithoutFileByAddress) {
  cache_->add_region({space_.at(0), kGranule, -1, 0});
  cache_->add_region({space_.at(kBytes), kGranule, -1, 0});
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{kBytes}}) {
    const auto leased = lease(offset, 100);
    ASSERT_TRUE(leased);
    EXPECT_TRUE(range_of(*leased)->holds(reinterpret_cast<std::uintptr_t>(space_.at(offset)), 100));
  }
}

TEST_F(Cache, EvictsLeastRecentlyUsed) {
  add_all();
  for (const std::uint64_t granule : {0U, 1U, 2U, 0U}) EXPECT_TRUE(lease(granule * kGranule));
  EXPECT_EQ(memory_.made(), 3);
  EXPECT_TRUE(lease(3 * kGranule));  // evicts granule 1
  EXPECT_EQ(cache_->registered(), 3 * kGranule);
  EXPECT_EQ(memory_.bytes(), 3 * kGranule);
  EXPECT_TRUE(is_kept(2 * kGranule));
  EXPECT_TRUE(is_kept(0));
  EXPECT_TRUE(is_kept(3 * kGranule));
  EXPECT_FALSE(is_kept(1 * kGranule));  // evicts granule 2
  EXPECT_TRUE(is_kept(0));
  EXPECT_TRUE(is_kept(3 * kGranule));
  EXPECT_FALSE(is_kept(2 * kGranule));
}

TEST_F(Cache, NeverEvictsLeasedRegistrations) {
  add_all();
  std::vector<std::optional<Lease>> held;
  for (const std::uint64_t granule : {0U, 1U, 2U}) held.push_back(lease(granule * kGranule));
  EXPECT_FALSE(lease(3 * kGranule)) << "the budget is used up";
  EXPECT_EQ(memory_.count(), 3U);
  EXPECT_TRUE(is_kept(kGranule)) << "a registered granule can be leased again";
  held[1].reset();
  EXPECT_TRUE(lease(3 * kGranule));
  EXPECT_EQ(memory_.count(), 3U);
  for (const std::size_t kept : {0U, 2U}) EXPECT_TRUE(range_of(*held[kept]));
}

TEST_F(Cache, InvalidatedRegistrationServesOnlyItsHolder) {
  add_all();
  auto held = lease(kGranule);
  ASSERT_TRUE(held);
  cache_->invalidate({nullptr, kGranule, kFile, kGranule});
  EXPECT_EQ(cache_->registered(), 0U);
  EXPECT_TRUE(range_of(*held)) << "the registration lives until its lease ends";
  const auto later = lease(kGranule);
  ASSERT_TRUE(later);
  EXPECT_NE(later->registration, held->registration);
  EXPECT_EQ(memory_.count(), 2U);
  held.reset();
  EXPECT_EQ(memory_.count(), 1U);
  EXPECT_TRUE(range_of(*later));
}

TEST_F(Cache, InvalidatesOnlyAffectedGranules) {
  start(10 * kGranule);
  add_all();
  struct Case {
    std::uint64_t offset, bytes;
    std::vector<std::uint64_t> gone;
    int fd = kFile;
  };
  const std::vector<Case> cases{{0, kGranule, {0}},
                                {kGranule - 1, 2, {0, 1}},
                                {3 * kGranule, 3 * kGranule, {3, 4, 5}},
                                {4 * kGranule + 4096, 4096, {4}},
                                {9 * kGranule, 100 * kGranule, {9}},
                                {10 * kGranule, kGranule, {}},
                                {4 * kGranule, 0, {}},
                                {0, 10 * kGranule, {}, kFile + 1},
                                {0, 10 * kGranule, {}, kFile - 1}};
  for (const Case& each : cases) {
    for (std::uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(lease(i * kGranule));
    cache_->invalidate({nullptr, each.bytes, each.fd, each.offset});
    EXPECT_EQ(memory_.count(), 10 - each.gone.size());
    for (std::uint64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(is_kept(i * kGranule), std::ranges::find(each.gone, i) == each.gone.end())
          << each.offset << ' ' << each.bytes << ": " << i;
    }
  }
}

TEST_F(Cache, EvictsWhenRegistrationFails) {
  start(10 * kGranule);
  add_all();
  memory_.limit(2 * kGranule);
  for (const std::uint64_t granule : {0U, 1U, 2U}) EXPECT_TRUE(lease(granule * kGranule));
  EXPECT_EQ(memory_.refused(), 1);
  EXPECT_EQ(cache_->registered(), 2 * kGranule);
  auto one = lease(2 * kGranule);
  auto other = lease(kGranule);
  EXPECT_FALSE(lease(5 * kGranule)) << "both are held";
  EXPECT_EQ(cache_->registered(), 2 * kGranule);
  one.reset();
  EXPECT_TRUE(lease(5 * kGranule));
  EXPECT_TRUE(is_kept(kGranule));
}

// The limit on locked memory applies to the whole process, so a cache must make room for the caches
// of other communicators.
TEST_F(Cache, SharesBudgetWithOtherCaches) {
  add_all();
  RegistrationCache other(device_, 3 * kGranule);
  other.add_region({space_.at(0), kBytes, kFile, 0});
  for (const std::uint64_t granule : {0U, 1U, 2U}) EXPECT_TRUE(lease(granule * kGranule));
  EXPECT_TRUE(is_kept(0));
  {
    const auto held = other.lease(space_.part(5 * kGranule, 4096));  // evicts granule 1
    ASSERT_TRUE(held);
    EXPECT_EQ(memory_.bytes(), 3 * kGranule);
    EXPECT_EQ(cache_->registered(), 2 * kGranule);
    EXPECT_EQ(other.registered(), kGranule);
    EXPECT_TRUE(is_kept(2 * kGranule));
    EXPECT_TRUE(is_kept(0));
    EXPECT_FALSE(is_kept(1 * kGranule))
        << "granule 2 is evicted, because the other cache's granule is held";
    EXPECT_EQ(other.registered(), kGranule);
  }
  memory_.limit(3 * kGranule);
  const Registration own =
      other.register_always(space_.part(9 * kGranule, 4096), PeerAccess::window);
  EXPECT_LT(cache_->registered() + other.registered(), 3 * kGranule)
      << "cached registrations must be evicted";
}

TEST_F(Cache, StaysUsableWhenNothingCanBeRegistered) {
  add_all();
  for (const int error : {ENOMEM, EFAULT, EINVAL}) {
    EXPECT_TRUE(lease(0));
    cache_->invalidate({nullptr, kGranule, kFile, kGranule});
    memory_.refuse(10, error);
    EXPECT_FALSE(lease(kGranule));
    EXPECT_FALSE(lease(kGranule));
    EXPECT_EQ(cache_->registered(), memory_.bytes());
    memory_.refuse(0, 0);
    EXPECT_TRUE(lease(kGranule));
    EXPECT_TRUE(lease(0));
  }
}

TEST_F(Cache, LeaseMayOutliveCache) {
  add_all();
  auto held = lease(0);
  ASSERT_TRUE(held);
  cache_.reset();
  device_.reset();
  EXPECT_TRUE(range_of(*held));
  EXPECT_EQ(memory_.verbs().open_devices, 1);
}

// CAP_IPC_LOCK lifts the limit, so the test drops the capability in a separate thread.
TEST(RegistrationBudget, IsThreeQuartersOfMemlockLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const std::uint64_t most = std::min<std::uint64_t>(before.rlim_max, 8 * kMiB);
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    ASSERT_EQ(syscall(SYS_capget, &header, sets.data()), 0);
    sets.at(CAP_TO_INDEX(CAP_IPC_LOCK)).effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
    ASSERT_EQ(syscall(SYS_capset, &header, sets.data()), 0);
    rlimit limit{most, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    EXPECT_EQ(registration_budget(), most / 4 * 3);
    if (before.rlim_max == RLIM_INFINITY) {
      limit.rlim_cur = RLIM_INFINITY;
      ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
      EXPECT_EQ(registration_budget(), std::numeric_limits<std::uint64_t>::max());
    }
  }).join();
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

}  // namespace
}  // namespace hccl::verbs
