// SPDX-License-Identifier: Apache-2.0
// PyTorch's threads that compute gradients of HPU tensors: one thread per visible device, started
// by the first backward pass of the process.
#pragma once

namespace hccl_torch_hpu {

class AutogradThreads {
 public:
  // Notices that the threads have started if the calling thread is one of them: each one selects
  // its device when it starts. Thread safety: any thread.
  static void notice_start() noexcept;
  // Blocks until the threads no longer need the interpreter's lock: after a backward pass has
  // returned, its thread still releases Python objects. A thread that asks for the lock while the
  // interpreter ends would abort the process. Does nothing if the process has no such threads.
  // Gives up after kTimeout. Call it without the interpreter's lock, when no backward pass runs.
  static void settle();
};

}  // namespace hccl_torch_hpu
