// SPDX-License-Identifier: Apache-2.0
// Maps PyTorch element types and reductions to the library's.
#pragma once

#include <hccl_types.h>

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace hccl_torch {

// A reduction of a tensor's elements, in the library's terms.
struct Reduction {
  hcclDataType_t type = hcclFloat32;
  hcclRedOp_t operation = hcclSum;
  std::int64_t parts = 1;  // library elements per tensor element: 2 for complex types
  at::Tensor factor;       // each rank multiplies its elements by this first; may be undefined

  // Returns the number of library elements in a tensor.
  [[nodiscard]] std::uint64_t count(const at::Tensor& tensor) const {
    return static_cast<std::uint64_t>(tensor.numel() * parts);
  }
};

// Returns the library's equivalent of a reduction. Throws c10::TypeError if there is none; the
// error text names `call`, the operation and the type. Throws c10::ValueError for PREMUL_SUM
// without a factor.
[[nodiscard]] Reduction reduction_of(const c10d::ReduceOp& operation, at::ScalarType type,
                                     const char* call);

}  // namespace hccl_torch
