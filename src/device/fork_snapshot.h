// SPDX-License-Identifier: Apache-2.0
// Makes forked children's private copies of device memory, in the child, while the forking thread
// waits.
#pragma once

namespace hccl::device {

class Arena;

// From now on, children get what `arena` keeps; a second call does nothing. Not to be called with
// the arena's lock. Throws std::bad_alloc.
void copy_at_fork(Arena& arena);
// To be called before the arena goes.
void forget_at_fork(Arena& arena) noexcept;

}  // namespace hccl::device
