// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hccl_torch_hpu {

// Registers every operation of PyTorch that has a CPU kernel for the HPU. Called once, after the
// kernels of the device's own have been registered.
void register_operations();

}  // namespace hccl_torch_hpu
