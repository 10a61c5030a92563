// SPDX-License-Identifier: Apache-2.0
#include "host_alias.h"

#include <utility>

#include <c10/core/DispatchKeySet.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

namespace hccl_torch {

namespace {

c10::StorageImpl* (*host_storage_of)(c10::StorageImpl* device) = nullptr;

}  // namespace

void set_host_storages(c10::StorageImpl* (*function)(c10::StorageImpl* device)) {
  host_storage_of = function;
}

at::Tensor host_alias(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  auto memory = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
      host_storage_of(tensor.storage().unsafeGetStorageImpl()));
  at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(memory)), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                     tensor.storage_offset());
  if (tensor.is_conj()) alias._set_conj(true);
  if (tensor.is_neg()) alias._set_neg(true);
  return alias;
}

}  // namespace hccl_torch
