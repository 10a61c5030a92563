// SPDX-License-Identifier: Apache-2.0
#include "block_pool.h"

#include "device.h"
#include "memory_pool.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>
#include <utility>

#include <c10/util/Exception.h>
#include <pthread.h>

namespace hccl_torch_hpu {

namespace {

using hccl_torch::MemoryPool;

constexpr std::size_t kGrain = 64;
constexpr std::size_t kLeastLarge = 32768;
constexpr std::size_t kSlab = std::size_t{1} << 20;
constexpr std::size_t kLinearClasses = 8;  // 64, 128, ... 512 bytes; then four per power of two

std::size_t class_of(std::size_t bytes) {
  const std::size_t grains = (bytes + kGrain - 1) / kGrain;
  if (grains <= kLinearClasses) return grains - 1;
  const std::size_t power = static_cast<std::size_t>(std::bit_width(grains - 1)) - 1;
  return kLinearClasses + (power - 3) * 4 + (((grains - 1) >> (power - 2)) & 3);
}

std::size_t size_of_class(std::size_t size_class) {
  if (size_class < kLinearClasses) return (size_class + 1) * kGrain;
  const std::size_t power = (size_class - kLinearClasses) / 4 + 3;
  const std::size_t quarter = (size_class - kLinearClasses) % 4;
  return (((4 + quarter + 1) << (power - 2))) * kGrain;
}

// Frees a block of one size class. Each class has its own deleter.
template <std::size_t kClass>
void delete_small(void* block) {
  BlockPool::instance().release_small(block, kClass);
}

template <std::size_t... kClass>
constexpr auto make_deleters(std::index_sequence<kClass...>) {
  return std::array<c10::DeleterFnPtr, sizeof...(kClass)>{&delete_small<kClass>...};
}

void delete_large(void* block) { BlockPool::instance().release_large(block); }

}  // namespace

BlockPool& BlockPool::instance() {
  static auto* const pool = new BlockPool;
  return *pool;
}

void BlockPool::watch_forks() {
  static const int registered =
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] {
                       instance().is_child_ = true;
                       instance().mutex_.unlock();
                     });
  TORCH_CHECK(registered == 0, "hccl_torch_hpu: pthread_atfork failed");
}

void BlockPool::require_own_process() const {
  TORCH_CHECK(
      !is_child_,
      "hccl_torch_hpu: a forked process cannot use the device hpu:0 of its parent; start it "
      "with the method \"spawn\", or move its tensors to the CPU before the fork");
}

c10::DataPtr BlockPool::allocate(std::size_t bytes) {
  require_own_process();
  static constexpr auto kDeleters = make_deleters(std::make_index_sequence<kClasses>());
  const c10::Device host(c10::kCPU);
  if (bytes == 0) return {nullptr, host};
  if (bytes >= kLeastLarge) {
    void* const block = take_large(bytes);
    return {block, block, &delete_large, host};
  }
  const std::size_t size_class = class_of(bytes);
  void* const block = take_small(size_class);
  return {block, block, kDeleters[size_class], host};
}

void* BlockPool::take_small(std::size_t size_class) {
  const std::lock_guard lock(mutex_);
  if (free_[size_class].empty()) refill(size_class);
  void* const block = free_[size_class].back();
  free_[size_class].pop_back();
  count(size_of_class(size_class), true);
  return block;
}

// Adds a slab. All blocks of a slab belong to the same size class.
void BlockPool::refill(std::size_t size_class) {
  auto* const slab = static_cast<std::byte*>(MemoryPool::instance().allocate(kSlab, false));
  if (slab == nullptr) report_exhaustion(kSlab);
  watch_forks();
  const std::size_t size = size_of_class(size_class);
  const std::pair entry(static_cast<void*>(slab), size_class);
  slabs_.insert(std::upper_bound(slabs_.begin(), slabs_.end(), entry), entry);
  std::vector<void*>& blocks = free_[size_class];
  blocks.reserve(blocks.capacity() + kSlab / size);
  for (std::size_t at = kSlab / size * size; at > 0; at -= size) blocks.push_back(slab + at - size);
  statistics_.segment[0].increase(1);
  statistics_.reserved_bytes[0].increase(kSlab);
}

void* BlockPool::take_large(std::size_t bytes) {
  void* const block = MemoryPool::instance().allocate(bytes, false);
  const std::lock_guard lock(mutex_);
  if (block == nullptr) report_exhaustion(bytes);
  watch_forks();
  const std::pair entry(block, bytes);
  large_.insert(std::upper_bound(large_.begin(), large_.end(), entry), entry);
  count(bytes, true);
  statistics_.reserved_bytes[0].increase(bytes);
  return block;
}

bool BlockPool::release(void* block) noexcept {
  std::size_t size_class = kClasses;
  {
    const std::lock_guard lock(mutex_);
    const std::pair key(block, kClasses);
    const auto large =
        std::lower_bound(large_.begin(), large_.end(), std::pair(block, std::size_t{0}));
    if (large == large_.end() || large->first != block) {
      const auto slab = std::upper_bound(slabs_.begin(), slabs_.end(), key);
      if (slab == slabs_.begin()) return false;
      const auto [begin, of] = *std::prev(slab);
      if (static_cast<std::byte*>(block) >= static_cast<std::byte*>(begin) + kSlab) return false;
      size_class = of;
    }
  }
  size_class == kClasses ? release_large(block) : release_small(block, size_class);
  return true;
}

void BlockPool::release_small(void* block, std::size_t size_class) noexcept {
  const std::lock_guard lock(mutex_);
  free_[size_class].push_back(block);  // has enough capacity, see refill()
  count(size_of_class(size_class), false);
}

void BlockPool::release_large(void* block) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::lower_bound(large_.begin(), large_.end(), std::pair<void*, std::size_t>(block, 0));
    count(found->second, false);
    statistics_.reserved_bytes[0].decrease(found->second);
    large_.erase(found);
  }
  MemoryPool::instance().release(block);
}

void BlockPool::count(std::size_t bytes, bool is_allocated) noexcept {
  for (auto* const stat : {&statistics_.allocation[0], &statistics_.active[0]}) {
    is_allocated ? stat->increase(1) : stat->decrease(1);
  }
  for (auto* const stat : {&statistics_.allocated_bytes[0], &statistics_.active_bytes[0],
                           &statistics_.requested_bytes[0]}) {
    is_allocated ? stat->increase(bytes) : stat->decrease(bytes);
  }
}

void BlockPool::report_exhaustion(std::size_t bytes) {
  static_cast<void>(hccl_torch::device());  // throws an error with the reason if there is no device
  ++statistics_.num_ooms;
  const auto [free, total] = free_and_total();
  TORCH_CHECK_WITH(OutOfMemoryError, false, "hpu:0 (emulated) is out of memory: tried to allocate ",
                   bytes, " bytes; of the device's ", total, " bytes, ", free, " are free, and ",
                   statistics_.allocated_bytes[0].current,
                   " are held by tensors of this process. Use smaller batches, or give the device "
                   "more memory with HCCL_DEVICE_MEMORY");
}

void BlockPool::trim() { MemoryPool::instance().trim(); }

BlockPool::Statistics BlockPool::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void BlockPool::reset_accumulated() {
  const std::lock_guard lock(mutex_);
  for (auto* const stat :
       {&statistics_.allocation[0], &statistics_.segment[0], &statistics_.active[0],
        &statistics_.allocated_bytes[0], &statistics_.reserved_bytes[0],
        &statistics_.active_bytes[0], &statistics_.requested_bytes[0]}) {
    stat->reset_accumulated();
  }
  statistics_.num_ooms = 0;
}

void BlockPool::reset_peaks() {
  const std::lock_guard lock(mutex_);
  for (auto* const stat :
       {&statistics_.allocation[0], &statistics_.segment[0], &statistics_.active[0],
        &statistics_.allocated_bytes[0], &statistics_.reserved_bytes[0],
        &statistics_.active_bytes[0], &statistics_.requested_bytes[0]}) {
    stat->reset_peak();
  }
}

std::pair<std::size_t, std::size_t> BlockPool::free_and_total() {
  std::uint64_t free = 0;
  std::uint64_t total = 0;
  const synStatus status = synDeviceGetMemoryInfo(hccl_torch::device(), &free, &total);
  TORCH_CHECK(status == synSuccess, "hccl_torch_hpu: synDeviceGetMemoryInfo returned ", status);
  return {free + MemoryPool::instance().usage().cached_bytes, total};
}

}  // namespace hccl_torch_hpu
