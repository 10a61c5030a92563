// SPDX-License-Identifier: Apache-2.0
// Runs operations on HPU tensors with PyTorch's CPU kernels, directly in the device's memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace hccl_torch_hpu {

// Returns the name of an operation with its overload, such as "aten::add.Tensor".
[[nodiscard]] std::string full_name(const c10::OperatorName& name);

// The boxed kernel of one operation.
class Fallback final : public c10::OperatorKernel {
 public:
  explicit Fallback(const c10::OperatorHandle& operation);

  // Runs the CPU kernel. First blocks until collectives and messages that use the arguments' memory
  // have ended. Throws c10::Error for a CPU tensor that the operation does not accept, and
  // c10::NotImplementedError if the CPU has no kernel for the operation.
  void operator()(const c10::OperatorHandle& operation, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  class Call;

  const std::size_t arguments_;
  const bool takes_cpu_tensors_;       // whether it accepts CPU tensors among its arguments
  const bool takes_numbers_in_lists_;  // whether its lists may hold zero-dimensional CPU tensors
  const std::uint64_t written_;        // one bit per argument that the operation writes to
  const std::int64_t generator_;       // index of the argument that is a generator, or -1
  const bool draws_unasked_;           // whether it draws random numbers but takes no generator
  const std::int64_t cpu_result_;      // index of the result that stays on the CPU, or -1
  std::atomic<std::uint64_t>& calls_;
};

// Runs any operation that has no Fallback of its own, such as one from an extension.
void call_fallback(const c10::OperatorHandle& operation, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack);

// Return and reset the number of calls to each operation, keyed by its name. Operations without
// calls are left out. Thread safety: any thread.
[[nodiscard]] std::map<std::string, std::uint64_t> operation_counts();
void reset_operation_counts();

}  // namespace hccl_torch_hpu
