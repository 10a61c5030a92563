// SPDX-License-Identifier: Apache-2.0
// PyTorch's thread that computes gradients of HPU tensors. The first backward pass of the process
// starts this thread.
#pragma once

namespace hccl_torch_hpu {

class AutogradThread {
 public:
  // If called by PyTorch's thread, records that this thread runs tasks. Call it when a device is
  // selected, which PyTorch does before each task. Thread safety: any thread.
  static void notice_task() noexcept;
  // Blocks until the thread has finished all backward passes and no longer needs the GIL. Even
  // after backward() has returned, the thread may still be releasing Python objects, and requesting
  // the GIL during interpreter shutdown would abort the process. Gives up after 5 s and prints a
  // message to stderr. Does nothing in a forked child, or if the thread has run no task. Call it
  // without holding the GIL.
  static void settle() noexcept;
};

}  // namespace hccl_torch_hpu
