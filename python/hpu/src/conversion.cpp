// SPDX-License-Identifier: Apache-2.0
#include "conversion.h"

#include "block_pool.h"
#include "device_works.h"
#include "memory_pool.h"
#include "storage.h"

#include <utility>

#include <ATen/ATen.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/hash.h>

namespace hccl_torch_hpu {

namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

// Returns whether the tensor is a lazy tensor of zeros, which has no memory.
bool is_zero_tensor(const at::Tensor& tensor) { return tensor._is_zerotensor(); }

void copy_bits(const at::Tensor& from, at::Tensor& to) {
  if (from.is_conj() != to.is_conj()) to._set_conj(from.is_conj());
  if (from.is_neg() != to.is_neg()) to._set_neg(from.is_neg());
}

}  // namespace

at::Tensor Conversion::to_host(const at::Tensor& tensor) {
  for (const Argument& argument : arguments_) {
    if (argument.device.is_same(tensor)) return argument.host;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided && tensor.has_storage(),
                              "hccl_torch_hpu: the emulated device has no ", tensor.layout(),
                              " tensors; call to_dense(), or move the tensor to the CPU");
  BlockPool::instance().require_own_process();
  if (hccl_torch::DeviceWorks::instance().any())
    hccl_torch::DeviceWorks::instance().complete_users_of(hccl_torch::MemoryRange(tensor));
  c10::TensorImpl* const device = tensor.unsafeGetTensorImpl();
  c10::StorageImpl* const storage = device->unsafe_storage().unsafeGetStorageImpl();
  DispatchKeySet keys(DispatchKey::CPU);
  if (is_zero_tensor(tensor)) keys = keys.add(DispatchKey::ZeroTensor);
  auto alias = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(host_storage(storage))), keys,
      device->dtype());
  alias->set_storage_offset(device->storage_offset());
  alias->set_sizes_and_strides(device->sizes(), device->strides());
  if (device->is_wrapped_number()) alias->set_wrapped_number(true);
  at::Tensor host(std::move(alias));
  copy_bits(tensor, host);
  arguments_.push_back({tensor, host});
  return host;
}

std::pair<c10::Storage, const Conversion::Argument*> Conversion::device_storage_of(
    const at::Tensor& host) {
  c10::StorageImpl* const storage = host.storage().unsafeGetStorageImpl();
  for (const Argument& argument : arguments_) {
    c10::StorageImpl* const device = argument.device.storage().unsafeGetStorageImpl();
    if (host_storage(device) != storage) continue;
    follow_host(device, storage);
    return {argument.device.storage(), &argument};
  }
  for (const NewStorage& one : made_) {
    if (one.host == storage) return {one.device, nullptr};
  }
  made_.push_back({storage, wrap_storage(host.storage())});
  return {made_.back().device, nullptr};
}

at::Tensor Conversion::to_device(const at::Tensor& result) {
  if (!result.defined() || !result.is_cpu()) return result;
  for (const Argument& argument : arguments_) {
    if (argument.host.is_same(result)) return argument.device;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(result.layout() == at::kStrided && result.has_storage(),
                              "hccl_torch_hpu: the emulated device has no ", result.layout(),
                              " tensors; call this on the CPU");
  TORCH_CHECK_NOT_IMPLEMENTED(!result.is_quantized(),
                              "hccl_torch_hpu: the emulated device has no quantized tensors; call "
                              "this on the CPU, or cast to float8");
  const void* const memory = result.storage().data();
  if (memory != nullptr && !hccl_torch::MemoryPool::instance().contains(memory))
    return to_device(result.clone());
  auto [storage, base] = device_storage_of(result);
  DispatchKeySet keys(DispatchKey::HPU);
  if (is_zero_tensor(result)) keys = keys.add(DispatchKey::ZeroTensor);
  auto made = base == nullptr
                  ? c10::make_intrusive<c10::TensorImpl>(std::move(storage), keys, result.dtype())
                  : c10::make_intrusive<c10::TensorImpl>(c10::TensorImpl::VIEW, std::move(storage),
                                                         base->device.key_set(), result.dtype());
  made->set_storage_offset(result.storage_offset());
  made->set_sizes_and_strides(result.sizes(), result.strides());
  if (result.unsafeGetTensorImpl()->is_wrapped_number()) made->set_wrapped_number(true);
  at::Tensor device(std::move(made));
  copy_bits(result, device);
  return device;
}

std::size_t Conversion::signature() const {
  std::size_t hash = 0;
  for (const Argument& argument : arguments_) {
    hash = c10::hash_combine(hash, static_cast<std::size_t>(argument.host.scalar_type()));
    for (const std::int64_t extent : argument.host.sizes())
      hash = c10::hash_combine(hash, static_cast<std::size_t>(extent));
  }
  return hash;
}

void Conversion::follow_aliases() {
  for (Argument& argument : arguments_) {
    c10::TensorImpl* const device = argument.device.unsafeGetTensorImpl();
    c10::TensorImpl* const host = argument.host.unsafeGetTensorImpl();
    c10::StorageImpl* const storage = device->unsafe_storage().unsafeGetStorageImpl();
    if (host_storage(storage) == host->unsafe_storage().unsafeGetStorageImpl()) {
      follow_host(storage, host->unsafe_storage().unsafeGetStorageImpl());
    } else {
      device->set_storage_keep_dtype(wrap_storage(host->unsafe_storage()));
    }
    if (host->sizes() != device->sizes() || host->strides() != device->strides() ||
        host->storage_offset() != device->storage_offset()) {
      device->set_storage_offset(host->storage_offset());
      device->set_sizes_and_strides(host->sizes(), host->strides());
    }
    copy_bits(argument.host, argument.device);
  }
}

}  // namespace hccl_torch_hpu
