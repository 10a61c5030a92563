// SPDX-License-Identifier: Apache-2.0
// PyTorch's thread that computes gradients of HPU tensors. The first backward pass of the process
// starts this thread.
#pragma once

namespace hccl_torch_hpu {

class AutogradThread {
 public:
  // Records that PyTorch's thread runs tasks, if the calling thread is that thread. Call it when a
  // device is selected, which PyTorch does before each task. Thread safety: any thread.
  static void notice_task() noexcept;
  // Blocks until the thread has finished all backward passes and no longer needs the interpreter's
  // lock. The thread still releases Python objects after backward() has returned. If the thread
  // requested the lock while the interpreter ends, the process would abort. Gives up after 5 s,
  // with a message on stderr. Does nothing if the thread has run no task. Call it without the
  // interpreter's lock.
  static void settle() noexcept;
};

}  // namespace hccl_torch_hpu
