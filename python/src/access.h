// SPDX-License-Identifier: Apache-2.0
// Checks memory that the backend itself copies from or to, so that invalid memory causes an error
// instead of a signal. The library itself checks the memory that it copies.
#pragma once

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Throw c10::ValueError if the memory of a tensor cannot be read or written to. `call` names the
// function in the error's text.
void require_readable(const at::Tensor& tensor, const char* call);
void require_writable(const at::Tensor& tensor, const char* call);

}  // namespace hccl_torch
