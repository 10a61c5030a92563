// SPDX-License-Identifier: Apache-2.0
// PyTorch's threads that compute gradients of HPU tensors: one thread per visible device, started
// by the first backward pass of the process.
#pragma once

namespace hccl_torch_hpu {

class AutogradThreads {
 public:
  // Counts the calling thread if it is one of the threads. Each one selects its device when it
  // starts, and no longer needs the interpreter's lock then. Thread safety: any thread.
  static void count_start() noexcept;
  // Blocks until the threads no longer need the interpreter's lock: after a backward pass has
  // returned, its thread still releases Python objects. A thread that asks for the lock while the
  // interpreter ends would abort the process. Does nothing if the process has no such threads.
  // Gives up after kTimeout. Call it without the interpreter's lock, when no backward pass runs.
  static void settle();
};

}  // namespace hccl_torch_hpu
