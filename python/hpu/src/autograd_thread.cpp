// SPDX-License-Identifier: Apache-2.0
#include "autograd_thread.h"

#include "block_pool.h"
#include "storage.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <thread>
#include <utility>

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/python_headers.h>

namespace hccl_torch_hpu {

namespace {

constexpr std::chrono::seconds kTimeout{5};

std::atomic<bool> has_run{false};

// Runs a backward pass that computes nothing and has no Python objects. PyTorch's thread runs this
// pass after all tasks of other passes, because it prefers nodes with high sequence numbers.
// Sequence numbers start at 0 in each thread of the program, so call this function on a new thread.
void run_last_pass() {
  const at::Tensor leaf = at::empty({0}, kHpu).requires_grad_();
  const at::Tensor root = leaf.clone();
  static_cast<void>(torch::autograd::grad({root}, {leaf}, {leaf.detach()}));
}

}  // namespace

// A call without the interpreter's lock comes from PyTorch's thread: programs select a device
// through Python, and therefore hold the lock.
void AutogradThread::notice_task() noexcept {
  if (!has_run.load(std::memory_order_relaxed) && PyGILState_Check() == 0) has_run = true;
}

void AutogradThread::settle() noexcept {
  if (!has_run || BlockPool::instance().is_in_forked_process()) return;
  try {
    std::packaged_task<void()> pass(run_last_pass);
    const std::future<void> end = pass.get_future();
    std::thread(std::move(pass)).detach();
    if (end.wait_for(kTimeout) == std::future_status::timeout) {
      std::fputs(
          "hccl_torch_hpu: a backward pass is still running while the program ends, so the process "
          "may abort; let the thread that called backward() end first\n",
          stderr);
    }
  } catch (const std::exception&) {
    // No thread can be started, so the program ends without the wait. An error of the pass itself
    // is not caught here: it is stored in `end`, and ends the wait early.
  }
}

}  // namespace hccl_torch_hpu
