// SPDX-License-Identifier: Apache-2.0
// Gives the host access to tensors of the emulated device.
#pragma once

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Returns a CPU tensor that shares the memory of `tensor`, or `tensor` itself if it is a CPU
// tensor. The memory lives as long as the result, even if the storage of `tensor` is destroyed
// earlier. Preserves the shape, the strides, and the lazy conjugation and negation.
[[nodiscard]] at::Tensor host_alias(const at::Tensor& tensor);

// Sets the function that returns the CPU storage over the bytes of an HPU storage. The module that
// creates HPU storages calls set_host_storages() once, before it creates the first one.
void set_host_storages(c10::StorageImpl* (*host_storage_of)(c10::StorageImpl* device));

}  // namespace hccl_torch
