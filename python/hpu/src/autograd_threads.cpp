// SPDX-License-Identifier: Apache-2.0
#include "autograd_threads.h"

#include "block_pool.h"
#include "storage.h"
#include "streams.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/python_headers.h>

namespace hccl_torch_hpu {

namespace {

using namespace std::chrono_literals;

// The longest wait for threads that are starting.
constexpr auto kTimeout = 1s;

std::atomic<int> started{0};

}  // namespace

// Programs select a device through Python, and so with the interpreter's lock.
void AutogradThreads::count_start() noexcept {
  if (PyGILState_Check() == 0) started.fetch_add(1);
}

// The thread of a device runs one backward pass after the other, so an empty pass returns after the
// thread has released the objects of the pass before. The empty pass itself has no Python objects.
void AutogradThreads::settle() {
  if (started.load() == 0 || BlockPool::instance().is_in_forked_process()) return;
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (started.load() < visible_devices() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  const at::Tensor nothing = at::empty({0}, kHpu).requires_grad_();
  static_cast<void>(torch::autograd::grad({nothing}, {nothing}, {nothing.detach()}));
}

}  // namespace hccl_torch_hpu
