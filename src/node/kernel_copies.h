// SPDX-License-Identifier: Apache-2.0
// Measures how fast the kernel copies memory between processes on this machine.
#pragma once

namespace hccl::node {

// Returns whether process_vm_readv() is so slow here that copying data twice in user space, to a
// staging buffer and out of it, takes less time than one copy by the kernel. The answer depends on
// the processor and on the kernel's mitigations. The first call in a process measures it, which
// takes about 0.1 ms. Returns false if the system forbids the measurement.
[[nodiscard]] bool kernel_copies_slowly();

}  // namespace hccl::node
