// SPDX-License-Identifier: Apache-2.0
// How the library sees tensors' elements and reductions.
#pragma once

#include <hccl_types.h>

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace hccl_torch {

// A reduction that the library can do on the elements as they are.
struct Reduction {
  hcclDataType_t type = hcclFloat32;
  hcclRedOp_t operation = hcclSum;
  std::int64_t parts = 1;  // of the library's elements in one of the tensor's: 2 if it is complex
  at::Tensor factor;       // with which each rank multiplies its elements before; undefined: none

  // Returns the library's count of elements.
  [[nodiscard]] std::uint64_t count(const at::Tensor& tensor) const {
    return static_cast<std::uint64_t>(tensor.numel() * parts);
  }
};

// Throws c10::TypeError (Python's TypeError) naming `call`, the operation and the type if the
// library does not have the reduction.
[[nodiscard]] Reduction reduction_of(const c10d::ReduceOp& operation, at::ScalarType type,
                                     const char* call);

}  // namespace hccl_torch
