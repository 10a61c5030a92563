// SPDX-License-Identifier: Apache-2.0
// Makes private copies of device memory in forked children, while the forking thread waits.
#pragma once

namespace hccl::device {

class Arena;

// Makes children forked from now on copy the ranges that `arena` keeps (Arena::keep_at_fork()). A
// second call for the same arena does nothing. The caller must not hold the arena's lock. Throws
// Error(hcclOutOfMemory) or std::bad_alloc.
void copy_at_fork(Arena& arena);
// Undoes copy_at_fork(). Call it before the arena is destroyed.
void forget_at_fork(Arena& arena) noexcept;

}  // namespace hccl::device
