// SPDX-License-Identifier: Apache-2.0
#include "host_alias.h"

#include <utility>

#include <c10/core/DispatchKeySet.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

namespace hccl_torch {

at::Tensor host_alias(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const c10::Storage& storage = tensor.storage();
  auto memory = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
      c10::DataPtr(const_cast<void*>(storage.data()), c10::Device(c10::kCPU)), nullptr, false);
  at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(memory)), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                     tensor.storage_offset());
  if (tensor.is_conj()) alias._set_conj(true);
  if (tensor.is_neg()) alias._set_neg(true);
  return alias;
}

}  // namespace hccl_torch
