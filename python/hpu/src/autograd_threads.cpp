// SPDX-License-Identifier: Apache-2.0
#include "autograd_threads.h"

#include "block_pool.h"
#include "storage.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/python_headers.h>

namespace hccl_torch_hpu {

namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 5s;

std::atomic<bool> have_started{false};

}  // namespace

// Programs select a device through Python, and so with the interpreter's lock.
void AutogradThreads::notice_start() noexcept {
  if (PyGILState_Check() == 0) have_started = true;
}

// The thread of a device runs one backward pass after the other, so an empty pass returns after the
// thread has released the objects of the pass before. The empty pass itself has no Python objects.
// It runs on a thread of its own, because the pass before may never end.
void AutogradThreads::settle() {
  if (!have_started || BlockPool::instance().is_in_forked_process()) return;
  std::packaged_task<void()> pass([] {
    const at::Tensor nothing = at::empty({0}, kHpu).requires_grad_();
    static_cast<void>(torch::autograd::grad({nothing}, {nothing}, {nothing.detach()}));
  });
  const std::future<void> end = pass.get_future();
  std::thread(std::move(pass)).detach();
  end.wait_for(kTimeout);
}

}  // namespace hccl_torch_hpu
