// SPDX-License-Identifier: Apache-2.0
// Tensors of the emulated device as the host sees them.
#pragma once

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Returns a CPU tensor over the memory of `tensor`, which has to outlive it; `tensor` itself if it
// lies in CPU memory already. Shapes, strides and the lazy conjugation and negation stay.
[[nodiscard]] at::Tensor host_alias(const at::Tensor& tensor);

}  // namespace hccl_torch
