// SPDX-License-Identifier: Apache-2.0
// PyTorch's thread that computes gradients of HPU tensors. The first backward pass of the process
// starts it.
#pragma once

namespace hccl_torch_hpu {

class AutogradThread {
 public:
  // Notices that gradients are computed if the calling thread is PyTorch's: PyTorch selects the
  // device before each task. Thread safety: any thread.
  static void notice_task() noexcept;
  // Blocks until the thread has finished all backward passes and no longer needs the interpreter's
  // lock: after a backward pass has returned, the thread still releases Python objects. If it asked
  // for the lock while the interpreter ends, the process would abort. Gives up after 5 s, with a
  // message on stderr. Does nothing if the thread has run no task. Call it without the
  // interpreter's lock.
  static void settle() noexcept;
};

}  // namespace hccl_torch_hpu
