// SPDX-License-Identifier: Apache-2.0
// Gives the device all operations that the CPU has.
#include "registration.h"

#include "fallback.h"

#include <memory>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace hccl_torch_hpu {

namespace {

using c10::DispatchKey;

// Operations that PyTorch composes of others, which CPU kernels do in one step.
constexpr std::string_view kComposed[] = {"aten::_convolution", "aten::mode.values"};

bool is_composed(const c10::OperatorName& name) {
  for (const std::string_view one : kComposed) {
    const std::string full =
        name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    if (full == one) return true;
  }
  return false;
}

bool is_wanted(const c10::OperatorHandle& operation) {
  return operation.hasKernelForDispatchKey(DispatchKey::CPU) ||
         is_composed(operation.operator_name()) ||
         operation.operator_name().name == "aten::convolution" ||
         operation.operator_name().name == "aten::convolution_backward";
}

}  // namespace

void register_operations() {
  static auto* const library =
      new torch::Library(torch::Library::IMPL, "aten", DispatchKey::HPU, __FILE__, __LINE__);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!std::string_view(name.name).starts_with("aten::")) continue;
    const auto operation = dispatcher.findSchema(name);
    if (!operation || !is_wanted(*operation) ||
        operation->hasKernelForDispatchKey(DispatchKey::HPU))
      continue;
    const std::string short_name = name.name.substr(6);
    library->impl(
        (name.overload_name.empty() ? short_name : short_name + "." + name.overload_name).c_str(),
        torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Fallback>(*operation)));
  }
}

TORCH_LIBRARY_IMPL(_, HPU, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&call_fallback>());
}

}  // namespace hccl_torch_hpu
