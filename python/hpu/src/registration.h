// SPDX-License-Identifier: Apache-2.0
// Registers the device with PyTorch's dispatcher.
#pragma once

#include <torch/library.h>

namespace hccl_torch_hpu {

// Registers the device. Call it exactly once. Throws c10::Error if this PyTorch's operations differ
// from those that the device was built for.
void register_device();

// Returns a new kernel library. Its kernels stay registered until the process ends.
[[nodiscard]] torch::Library& library_for(const char* name_space, c10::DispatchKey key);

// The parts of register_device():
void register_kernels();      // the operations in kernels.cpp
void register_operations();   // other CPU kernels, and the fallback; after register_kernels()
void register_collectives();  // of torch.distributed
void register_autocast();

}  // namespace hccl_torch_hpu
