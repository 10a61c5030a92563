// SPDX-License-Identifier: Apache-2.0
// Implements the operations that the device performs itself: memory, views, copies and a few
// others.
#include "conversion.h"
#include "registration.h"
#include "storage.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/max_pool1d_native.h>
#include <ATen/ops/view_native.h>

namespace hccl_torch_hpu {

namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

const DispatchKeySet kKeys(DispatchKey::HPU);

void check_options(std::optional<at::Layout> layout, std::optional<at::Device> device) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(at::kStrided) == at::kStrided,
                              "hccl_torch_hpu: the emulated device has no ", *layout,
                              " tensors; create the tensor on the CPU");
  if (device) require_visible_device(*device);
}

// Returns whether torch.use_deterministic_algorithms() requires new memory to be filled with values
// that reveal the use of uninitialised memory.
bool fills_new_memory() {
  return at::globalContext().deterministicAlgorithms() &&
         at::globalContext().deterministicFillUninitializedMemory();
}

at::Tensor filled_if_wanted(at::Tensor tensor) {
  if (fills_new_memory()) at::native::fill_empty_deterministic_(tensor);
  return tensor;
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                 std::optional<bool> /*pin_memory*/, std::optional<at::MemoryFormat> format) {
  check_options(layout, device);
  return filled_if_wanted(
      at::detail::empty_generic(size, allocator(), kKeys, c10::dtype_or_default(type), format));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> /*pin_memory*/) {
  check_options(layout, device);
  return filled_if_wanted(at::detail::empty_strided_generic(size, stride, allocator(), kKeys,
                                                            c10::dtype_or_default(type)));
}

// Returns a tensor of zeros without memory. Autograd uses such tensors for forward gradients that
// are not defined.
at::Tensor efficient_zero_tensor(at::IntArrayRef size, std::optional<at::ScalarType> type,
                                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                                 std::optional<bool> /*pin_memory*/) {
  check_options(layout, device);
  class NoMemory final : public c10::Allocator {
   public:
    c10::DataPtr allocate(std::size_t /*bytes*/) override { return {nullptr, kHpu}; }
    void copy_data(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) const override {}
  };
  static auto* const none = new NoMemory;
  return at::detail::empty_generic(size, none, kKeys | DispatchKeySet(DispatchKey::ZeroTensor),
                                   c10::dtype_or_default(type), std::nullopt);
}

// Copies elements. Either tensor may be on the CPU.
void copy_elements(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  Conversion conversion;
  at::Tensor target = to.is_hpu() ? conversion.to_host(to) : to;
  const at::Tensor source = from.is_hpu() ? conversion.to_host(from) : from;
  const at::AutoDispatchBelowADInplaceOrView guard;
  target.copy_(source, non_blocking);
}

at::Tensor& copy_(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (from.device().is_cpu() || from.device().is_hpu()) {
    copy_elements(to, from, non_blocking);
  } else {
    to.copy_(from.to(at::kCPU), non_blocking);
  }
  return to;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  at::Tensor target = to;
  copy_elements(target, from, non_blocking);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

void require_room(const at::Tensor& tensor) {
  c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  const std::size_t bytes =
      at::detail::computeStorageNbytes(impl->sizes(), impl->strides(), impl->itemsize(),
                                       static_cast<std::size_t>(impl->storage_offset()));
  if (impl->numel() > 0) grow(impl->unsafe_storage().unsafeGetStorageImpl(), bytes);
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size,
                          std::optional<at::MemoryFormat> format) {
  const auto bytes_before = static_cast<std::int64_t>(self.storage().nbytes());
  if (self.sizes() != size) self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  if (format) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  require_room(self);
  if (fills_new_memory()) at::native::fill_resize_deterministic_(self, bytes_before);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, std::int64_t offset,
                        at::IntArrayRef size, at::IntArrayRef stride) {
  TORCH_CHECK(source.device().is_hpu(),
              "Expected all tensors to be on the same device, but a "
              "storage on ",
              source.device(), " was given to a tensor on hpu:0");
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (stride.data() == nullptr) {
    impl->set_sizes_contiguous(size);
  } else {
    for (const std::int64_t one : stride)
      TORCH_CHECK(one >= 0, "set_: strides must not be negative, but one is ", one);
    impl->set_sizes_and_strides(size, stride);
  }
  require_room(self);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<std::int64_t>(source.nbytes() / self.element_size());
  return set_storage(self, std::move(source), 0, {elements}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                     source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  return set_storage(self, at::empty({0}, self.options()).storage(), 0, {0}, {});
}

// Runs the CPU kernel if no gradient is needed. Without this function, PyTorch would compose the
// operation from other operations on this device.
at::Tensor max_pool1d(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                      at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  if ((self.requires_grad() && at::GradMode::is_enabled()) || self._fw_grad(0).defined())
    return at::native::max_pool1d(self, kernel, stride, padding, dilation, ceil_mode);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return at::max_pool1d(self, kernel, stride, padding, dilation, ceil_mode);
}

// Reimplements the CPU kernel, because that kernel draws from the CPU's default generator.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double probability,
                                                  std::optional<bool> train) {
  if (input.numel() == 0) return {input, at::empty_like(input)};
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
  const double kept = 1.0 - probability;
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool)).bernoulli_(kept);
  at::Tensor output = input.mul(mask).mul_(kept == 0.0 ? 0.0 : 1.0 / kept);
  return {std::move(output), std::move(mask)};
}

std::int64_t choose_attention(const at::Tensor& /*query*/, const at::Tensor& /*key*/,
                              const at::Tensor& /*value*/,
                              const std::optional<at::Tensor>& /*mask*/, double /*dropout*/,
                              bool /*is_causal*/, std::optional<double> /*scale*/,
                              bool /*enable_gqa*/) {
  constexpr std::int64_t kMath = 0;
  return kMath;
}

}  // namespace

void register_kernels() {
  torch::Library& library = library_for("aten", DispatchKey::HPU);
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_efficientzerotensor", &efficient_zero_tensor);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("copy_", &copy_);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("resize_", &resize_);
  library.impl("set_.source_Storage", &set_whole_storage);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("set_.source_Tensor", &set_tensor);
  library.impl("set_", &set_nothing);
  library.impl("native_dropout", &native_dropout);
  library.impl("_fused_sdp_choice", &choose_attention);
  library_for("aten", DispatchKey::AutogradHPU).impl("max_pool1d", &max_pool1d);
  // A copy resolves the lazy conjugation and negation of its source itself.
  for (const DispatchKey lazy : {DispatchKey::Conjugate, DispatchKey::Negative})
    library_for("aten", lazy).impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace hccl_torch_hpu
