// SPDX-License-Identifier: Apache-2.0
#include "fallback.h"

#include "allocator.h"
#include "conversion.h"
#include "generator.h"
#include "step_recorder.h"
#include "storage.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/hash.h>

namespace hccl_torch_hpu {

namespace {

// Operations that accept CPU tensors among HPU tensors, such as indices and lengths.
constexpr std::array<std::string_view, 12> kMixed{"aten::index",
                                                  "aten::index_put",
                                                  "aten::index_put_",
                                                  "aten::_index_put_impl_",
                                                  "aten::_index_put_impl",
                                                  "aten::_unsafe_index",
                                                  "aten::_unsafe_index_put",
                                                  "aten::_pack_padded_sequence",
                                                  "aten::_pad_packed_sequence",
                                                  "aten::_pack_padded_sequence_backward",
                                                  "aten::copy_",
                                                  "aten::set_"};

class Counts {
 public:
  [[nodiscard]] static Counts& instance() {
    static auto* const counts = new Counts;
    return *counts;
  }
  [[nodiscard]] std::atomic<std::uint64_t>& of(const std::string& operation) {
    const std::lock_guard lock(mutex_);
    return counts_[operation];
  }
  [[nodiscard]] std::map<std::string, std::uint64_t> nonzero() {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::uint64_t> counts;
    for (const auto& [name, count] : counts_) {
      if (count > 0) counts.emplace(name, count);
    }
    return counts;
  }
  void reset() {
    const std::lock_guard lock(mutex_);
    for (auto& [name, count] : counts_) count = 0;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::atomic<std::uint64_t>> counts_;
};

std::int64_t generator_of(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  const auto found = std::find_if(arguments.begin(), arguments.end(),
                                  [](const auto& one) { return one.name() == "generator"; });
  return found == arguments.end() ? -1 : found - arguments.begin();
}

std::uint64_t written_of(const c10::FunctionSchema& schema) {
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(schema.arguments().size(), 64); ++i) {
    const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) written |= std::uint64_t{1} << i;
  }
  return written;
}

// Returns the index of the result that stays on the CPU (such as the batch sizes of a packed
// sequence), or -1 if there is none.
std::int64_t cpu_result_of(const std::string& name) {
  return name == "aten::_pack_padded_sequence" || name == "aten::_pad_packed_sequence" ? 1 : -1;
}

[[noreturn]] void refuse_cpu_tensor(const c10::OperatorHandle& operation) {
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              "hpu:0 and cpu! (when calling ", full_name(operation.operator_name()), ")");
}

}  // namespace

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// Converts the arguments and the results of one call.
class Fallback::Call {
 public:
  Call(const Fallback& kernel, const c10::OperatorHandle& operation)
      : kernel_(kernel), operation_(operation) {}

  void take(c10::IValue& argument, bool is_written) {
    if (argument.isTensor()) {
      const at::Tensor& tensor = argument.toTensor();
      if (is_written && tensor.defined() && tensor.is_cpu() && !kernel_.takes_cpu_tensors_)
        refuse_cpu_tensor(operation_);
      take(tensor, [&](at::Tensor host) { argument = std::move(host); });
    } else if (argument.isTensorList()) {
      take_list<at::Tensor>(argument);
    } else if (argument.isOptionalTensorList()) {
      take_list<std::optional<at::Tensor>>(argument);
    } else if (argument.isDevice()) {
      if (argument.toDevice().is_hpu()) {
        require_visible_device(argument.toDevice());
        argument = c10::Device(c10::kCPU);
      }
    } else if (argument.isGenerator()) {
      argument = host_generator(argument.toGenerator());
    }
  }

  void give(c10::IValue& result) {
    if (result.isTensor()) {
      result = conversion_.to_device(result.toTensor());
    } else if (result.isTensorList()) {
      c10::List<at::Tensor> device;
      for (const at::Tensor& one : result.toTensorVector())
        device.push_back(conversion_.to_device(one));
      result = std::move(device);
    }
  }
  [[nodiscard]] std::size_t signature() const {
    return c10::hash_combine(reinterpret_cast<std::size_t>(&kernel_.calls_),
                             conversion_.signature());
  }
  void end() { conversion_.follow_aliases(); }

 private:
  template <class Put>
  void take(const at::Tensor& tensor, Put put) {
    if (!tensor.defined()) return;
    if (tensor.is_hpu()) {
      put(conversion_.to_host(tensor));
    } else if (tensor.is_cpu() && tensor.dim() > 0 && !kernel_.takes_cpu_tensors_) {
      refuse_cpu_tensor(operation_);
    }
  }
  // Converts the tensors of a list. A zero-dimensional CPU tensor counts as a number only if the
  // operation computes each element of the list separately.
  template <class Element>
  void take_list(c10::IValue& argument) {
    c10::List<Element> hosts;
    const c10::List<Element> given = argument.to<c10::List<Element>>();
    hosts.reserve(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      const Element one = given.get(i);
      hosts.push_back(one);
      const std::optional<at::Tensor> tensor = one;
      if (!tensor) continue;
      if (!kernel_.takes_numbers_in_lists_ && tensor->defined() && tensor->is_cpu())
        refuse_cpu_tensor(operation_);
      take(*tensor, [&](at::Tensor host) { hosts.set(i, Element(std::move(host))); });
    }
    argument = std::move(hosts);
  }

  const Fallback& kernel_;
  const c10::OperatorHandle& operation_;
  Conversion conversion_;
};

Fallback::Fallback(const c10::OperatorHandle& operation)
    : arguments_(operation.schema().arguments().size()),
      takes_cpu_tensors_(std::find(kMixed.begin(), kMixed.end(), operation.operator_name().name) !=
                         kMixed.end()),
      takes_numbers_in_lists_(takes_cpu_tensors_ ||
                              operation.operator_name().name.starts_with("aten::_foreach_")),
      written_(written_of(operation.schema())),
      generator_(generator_of(operation.schema())),
      draws_unasked_(operation.hasTag(at::Tag::nondeterministic_seeded) && generator_ < 0),
      cpu_result_(cpu_result_of(operation.operator_name().name)),
      calls_(Counts::instance().of(full_name(operation.operator_name()))) {}

void Fallback::operator()(const c10::OperatorHandle& operation, c10::DispatchKeySet /*keys*/,
                          torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      operation.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU),
      "hccl_torch_hpu: ", full_name(operation.operator_name()),
      " has no kernel for the emulated device, because there is none for the CPU");
  calls_.fetch_add(1, std::memory_order_relaxed);
  Call call(*this, operation);
  const std::size_t first = stack->size() - arguments_;
  for (std::size_t i = 0; i < arguments_; ++i) {
    c10::IValue& argument = (*stack)[first + i];
    if (argument.isNone()) {
      if (static_cast<std::int64_t>(i) == generator_)
        argument = host_generator(default_generator());
    } else {
      call.take(argument, i < 64 && ((written_ >> i) & 1) != 0);
    }
  }
  if (StepRecorder::instance().is_enabled()) StepRecorder::instance().add(call.signature());
  {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(at::autocast_dispatch_keyset);
    const hccl_torch::AllocationGuard on_device(host_side_allocator());
    std::optional<DefaultDraws> draws;
    if (draws_unasked_) draws.emplace();
    operation.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    const std::size_t results = operation.schema().returns().size();
    for (std::size_t i = 0; i < results; ++i) {
      if (static_cast<std::int64_t>(i) != cpu_result_)
        call.give((*stack)[stack->size() - results + i]);
    }
    call.end();
  }
}

void call_fallback(const c10::OperatorHandle& operation, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  static std::mutex mutex;
  static auto* const kernels = new std::unordered_map<c10::OperatorName, std::unique_ptr<Fallback>>;
  Fallback* kernel = nullptr;
  {
    const std::lock_guard lock(mutex);
    std::unique_ptr<Fallback>& found = (*kernels)[operation.operator_name()];
    if (!found) found = std::make_unique<Fallback>(operation);
    kernel = found.get();
  }
  (*kernel)(operation, keys, stack);
}

std::map<std::string, std::uint64_t> operation_counts() { return Counts::instance().nonzero(); }

void reset_operation_counts() { Counts::instance().reset(); }

}  // namespace hccl_torch_hpu
