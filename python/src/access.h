// SPDX-License-Identifier: Apache-2.0
// Checks the memory that this backend copies from or to, so that unmapped or protected memory
// causes an error instead of a signal. The library itself checks the memory that it copies. This
// backend also checks the memory of large messages, before the call; see Issue::must_check().
#pragma once

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Throw c10::ValueError if this process cannot read, or cannot write, the memory of `tensor`.
// `call` is the function name in the error text.
void require_readable(const at::Tensor& tensor, const char* call);
void require_writable(const at::Tensor& tensor, const char* call);

}  // namespace hccl_torch
