// SPDX-License-Identifier: Apache-2.0
#include "registration.h"

#include "fallback.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>

namespace hccl_torch_hpu {

namespace {

using c10::DispatchKey;

// Operations that PyTorch composes from others, although the CPU has a single kernel for each.
constexpr std::string_view kComposed[] = {"aten::_convolution", "aten::convolution",
                                          "aten::convolution_backward", "aten::max_pool1d",
                                          "aten::mode.values"};

bool is_wanted(const c10::OperatorHandle& operation) {
  return operation.hasKernelForDispatchKey(DispatchKey::CPU) ||
         std::find(std::begin(kComposed), std::end(kComposed),
                   full_name(operation.operator_name())) != std::end(kComposed);
}

}  // namespace

torch::Library& library_for(const char* name_space, DispatchKey key) {
  return *new torch::Library(torch::Library::IMPL, name_space, key, __FILE__, __LINE__);
}

void register_operations() {
  torch::Library& library = library_for("aten", DispatchKey::HPU);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!std::string_view(name.name).starts_with("aten::")) continue;
    const auto operation = dispatcher.findSchema(name);
    if (!operation || !is_wanted(*operation) ||
        operation->hasKernelForDispatchKey(DispatchKey::HPU))
      continue;
    library.impl(full_name(name).substr(std::string_view("aten::").size()).c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Fallback>(*operation)));
  }
  library_for("_", DispatchKey::HPU)
      .fallback(torch::CppFunction::makeFromBoxedFunction<&call_fallback>());
}

void register_device() {
  register_kernels();
  register_operations();
  register_collectives();
  register_autocast();
}

}  // namespace hccl_torch_hpu
