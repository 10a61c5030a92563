// SPDX-License-Identifier: Apache-2.0
// Gives the host access to tensors of the emulated device.
#pragma once

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Returns a CPU tensor that shares the memory of `tensor` and keeps it alive, independent of that
// tensor's storage; `tensor` itself if it is in CPU memory already. Shapes, strides and the lazy
// conjugation and negation are kept.
[[nodiscard]] at::Tensor host_alias(const at::Tensor& tensor);

// Sets the function that returns the CPU storage over the same bytes as an HPU storage. The module
// that creates such storages calls this once, before the first one.
void set_host_storages(c10::StorageImpl* (*host_storage_of)(c10::StorageImpl* device));

}  // namespace hccl_torch
