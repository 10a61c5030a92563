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

// Runs a backward pass that computes nothing and has no Python objects. PyTorch's thread runs nodes
// with high sequence numbers first. Each thread of the program numbers its nodes from 0, so call
// this function on a new thread: its pass then runs after the tasks of all other passes.
void run_last_pass() {
  const at::Tensor leaf = at::empty({0}, kHpu).requires_grad_();
  const at::Tensor root = leaf.clone();
  static_cast<void>(torch::autograd::grad({root}, {leaf}, {leaf.detach()}));
}

}  // namespace

// A caller that does not hold the GIL is PyTorch's thread: programs select a device through Python,
// and therefore hold the GIL.
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
          "hccl_torch_hpu: a backward pass is still running at exit, so the process may abort; "
          "wait for the thread that called backward() before the program exits\n",
          stderr);
    }
  } catch (const std::exception&) {
    // No thread could be started, so the program exits without waiting. An error in the pass itself
    // is not caught here: it is stored in `end`, and ends the wait early.
  }
}

}  // namespace hccl_torch_hpu
