// SPDX-License-Identifier: Apache-2.0
// Asks the kernel whether memory that the backend copies from or to can be used, for an error where
// the copy would end the process. The library does that for memory that it uses where it lies.
#pragma once

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Throw c10::ValueError unless the memory of a tensor is mapped and its ends can be read, or
// written to. They do nothing on kernels before Linux 5.14, which cannot tell. `call` is for the
// text.
void require_readable(const at::Tensor& tensor, const char* call);
void require_writable(const at::Tensor& tensor, const char* call);

}  // namespace hccl_torch
