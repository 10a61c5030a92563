// SPDX-License-Identifier: Apache-2.0
#include "pinned_memory.h"

#include <cstddef>
#include <map>
#include <mutex>

#include <c10/core/CPUAllocator.h>

namespace hccl_torch_hpu {

namespace {

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const memory = c10::GetDefaultCPUAllocator()->raw_allocate(bytes);
    if (memory != nullptr) {
      const std::lock_guard lock(mutex_);
      ends_[static_cast<const std::byte*>(memory)] = static_cast<const std::byte*>(memory) + bytes;
    }
    return {memory, memory, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  [[nodiscard]] bool contains(const void* memory) {
    const auto* const address = static_cast<const std::byte*>(memory);
    const std::lock_guard lock(mutex_);
    auto next = ends_.upper_bound(address);
    return next != ends_.begin() && address < (--next)->second;
  }
  void forget(void* memory) {
    const std::lock_guard lock(mutex_);
    ends_.erase(static_cast<const std::byte*>(memory));
  }
  [[nodiscard]] static PinnedAllocator& instance() {
    static auto* const made = new PinnedAllocator;
    return *made;
  }

 private:
  static void release(void* memory) {
    instance().forget(memory);
    c10::GetDefaultCPUAllocator()->raw_deallocate(memory);
  }

  std::mutex mutex_;
  std::map<const std::byte*, const std::byte*> ends_;  // end of each block, by its start
};

}  // namespace

c10::Allocator* PinnedMemory::allocator() { return &PinnedAllocator::instance(); }

bool PinnedMemory::contains(const void* memory) {
  return PinnedAllocator::instance().contains(memory);
}

}  // namespace hccl_torch_hpu
