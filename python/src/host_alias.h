// SPDX-License-Identifier: Apache-2.0
// Tensors of the emulated device as the host sees them.
#pragma once

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Returns a CPU tensor that shares the memory of `tensor` and keeps it, whatever becomes of that
// tensor's storage; `tensor` itself if it lies in CPU memory already. Shapes, strides and the lazy
// conjugation and negation stay.
[[nodiscard]] at::Tensor host_alias(const at::Tensor& tensor);

// Sets the function that returns the CPU storage over the same bytes as an HPU storage. The module
// that makes such storages calls this once, before there are any.
void set_host_storages(c10::StorageImpl* (*host_storage_of)(c10::StorageImpl* device));

}  // namespace hccl_torch
