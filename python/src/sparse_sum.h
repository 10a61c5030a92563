// SPDX-License-Identifier: Apache-2.0
// The sum of the ranks' sparse tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace hccl_torch {

// Replaces a COO tensor on every rank by the sum of all. The ranks may have different elements.
// Blocks for several collectives of `group`. Throws c10::DistBackendError.
void sum_sparse(c10d::Backend& group, at::Tensor& tensor);

}  // namespace hccl_torch
