// SPDX-License-Identifier: Apache-2.0
// Sums the ranks' sparse tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace hccl_torch {

// Replaces the COO tensor of every rank with the sum of all ranks' tensors. The ranks' elements may
// be at different positions. Blocks for the duration of several collectives of `group`. Throws
// c10::DistBackendError.
void sum_sparse(c10d::Backend& group, at::Tensor& tensor);

}  // namespace hccl_torch
