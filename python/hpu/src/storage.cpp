// SPDX-License-Identifier: Apache-2.0
#include "storage.h"

#include "block_pool.h"
#include "device_works.h"
#include "streams.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <c10/util/Exception.h>

namespace hccl_torch_hpu {

namespace {

using HostStorage = c10::intrusive_ptr<c10::StorageImpl>;

void release_host(void* host) { HostStorage::reclaim(static_cast<c10::StorageImpl*>(host)); }

// Returns a pointer for an HPU storage over `host`. The pointer's context holds a reference to
// `host`.
c10::DataPtr pointer_into(HostStorage host) {
  void* const memory = host->mutable_data();
  return {memory, host.release(), &release_host, kHpu};
}

HostStorage make_host_storage(std::size_t bytes, c10::DataPtr memory) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               std::move(memory), host_side_allocator(), true);
}

class HostSideAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    return BlockPool::instance().allocate(bytes);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// The allocator of HPU tensors, through which torch.accelerator also queries the device's memory.
class HpuAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    return pointer_into(make_host_storage(bytes, BlockPool::instance().allocate(bytes)));
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t /*pool*/) override { BlockPool::instance().trim(); }
  void recordStream(const c10::DataPtr& /*memory*/, c10::Stream /*stream*/) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex /*device*/) override {
    return BlockPool::instance().statistics();
  }
  void resetAccumulatedStats(c10::DeviceIndex /*device*/) override {
    BlockPool::instance().reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex /*device*/) override { BlockPool::instance().reset_peaks(); }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex /*device*/) override {
    return BlockPool::free_and_total();
  }
};

}  // namespace

void require_visible_device(c10::Device device) {
  TORCH_CHECK(device.index() < visible_devices(), "hccl_torch_hpu: ", device.str(),
              " does not exist: this machine has ", visible_devices(),
              " visible emulated devices; list more modules in HABANA_VISIBLE_MODULES");
}

c10::Allocator* allocator() {
  static auto* const made = new HpuAllocator;
  return made;
}

c10::Allocator* host_side_allocator() {
  static auto* const made = new HostSideAllocator;
  return made;
}

c10::Storage wrap_storage(const c10::Storage& host) {
  HostStorage kept = HostStorage::reclaim_copy(host.unsafeGetStorageImpl());
  const std::size_t bytes = kept->nbytes();
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                            bytes, pointer_into(std::move(kept)),
                                                            allocator(), true));
}

// Returns the CPU storage. An HPU storage over foreign memory has none at first; the first call
// creates it.
c10::StorageImpl* host_storage(c10::StorageImpl* device) {
  c10::DataPtr& pointer = device->_mutable_data_ptr_no_checks();
  if (pointer.get_deleter() != &release_host) {
    auto* const owner = new c10::DataPtr(std::move(pointer));
    c10::DataPtr memory(
        owner->get(), owner, [](void* kept) { delete static_cast<c10::DataPtr*>(kept); },
        c10::Device(c10::kCPU));
    device->set_data_ptr_noswap(
        pointer_into(make_host_storage(device->nbytes(), std::move(memory))));
  }
  return static_cast<c10::StorageImpl*>(device->_mutable_data_ptr_no_checks().get_context());
}

void follow_host(c10::StorageImpl* device, c10::StorageImpl* host) {
  if (host->nbytes() == device->nbytes() && host->data() == device->data()) return;
  device->set_data_ptr_noswap(pointer_into(HostStorage::reclaim_copy(host)));
  device->set_nbytes(host->nbytes());
}

void grow(c10::StorageImpl* device, std::size_t bytes) {
  if (device->nbytes() >= bytes) return;
  TORCH_CHECK(device->resizable(), "hccl_torch_hpu: this storage of ", device->nbytes(),
              " bytes cannot grow to ", bytes, " bytes");
  c10::StorageImpl* const host = host_storage(device);
  const auto* const begin = static_cast<const std::byte*>(host->data());
  hccl_torch::DeviceWorks::instance().complete_users_of({begin, begin + host->nbytes()});
  c10::DataPtr larger = BlockPool::instance().allocate(bytes);
  if (host->nbytes() > 0) std::memcpy(larger.get(), host->data(), host->nbytes());
  host->set_data_ptr_noswap(std::move(larger));
  host->set_nbytes(bytes);
  follow_host(device, host);
}

}  // namespace hccl_torch_hpu
