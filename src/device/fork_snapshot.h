// SPDX-License-Identifier: Apache-2.0
// What forked children keep of device memory: private copies, made in the child while the thread
// that forks waits.
#pragma once

namespace hccl::device {

class Arena;

// From now on, children get what `arena` keeps; a second call does nothing. Not to be called with
// the arena's lock. Throws std::bad_alloc.
void copy_at_fork(Arena& arena);
// To be called before the arena goes.
void forget_at_fork(Arena& arena) noexcept;

}  // namespace hccl::device
