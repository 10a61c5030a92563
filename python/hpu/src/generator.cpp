// SPDX-License-Identifier: Apache-2.0
#include "generator.h"

#include "storage.h"

#include <utility>

#include <c10/core/GeneratorImpl.h>
#include <c10/util/Exception.h>

namespace hccl_torch_hpu {

namespace {

class HpuGenerator final : public c10::GeneratorImpl {
 public:
  explicit HpuGenerator(at::Generator host)
      : GeneratorImpl(kHpu, c10::DispatchKeySet(c10::DispatchKey::HPU)), host_(std::move(host)) {}

  [[nodiscard]] const at::Generator& host() const noexcept { return host_; }

  void set_current_seed(std::uint64_t seed) override { host_.set_current_seed(seed); }
  // The state has no offset, but copying and pickling a device's generator requires one.
  void set_offset(std::uint64_t /*offset*/) override {}
  std::uint64_t get_offset() const override { return 0; }
  std::uint64_t current_seed() const override { return host_.current_seed(); }
  std::uint64_t seed() override { return host_.seed(); }
  void set_state(const c10::TensorImpl& state) override { impl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return impl()->get_state(); }
  static c10::DeviceType device_type() { return c10::kHPU; }

 private:
  [[nodiscard]] c10::GeneratorImpl* impl() const { return host_.unsafeGetGeneratorImpl(); }
  HpuGenerator* clone_impl() const override { return new HpuGenerator(host_.clone()); }

  at::Generator host_;
};

at::CPUGeneratorImpl& impl_of(const at::Generator& generator) {
  return *static_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl());
}

std::mutex& draws_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

at::Generator make_generator() {
  return at::make_generator<HpuGenerator>(at::detail::createCPUGenerator());
}

const at::Generator& default_generator() {
  static const auto* const generator = new at::Generator(make_generator());
  return *generator;
}

at::Generator host_generator(const at::Generator& generator) {
  TORCH_CHECK(generator.device().type() == c10::kHPU,
              "Expected a 'hpu' device type for generator but found '", generator.device().type(),
              "'");
  return static_cast<HpuGenerator*>(generator.unsafeGetGeneratorImpl())->host();
}

DefaultDraws::DefaultDraws() : lock_(draws_mutex()) { exchange(); }

DefaultDraws::~DefaultDraws() { exchange(); }

void DefaultDraws::exchange() {
  at::CPUGeneratorImpl& device = impl_of(host_generator(default_generator()));
  at::CPUGeneratorImpl& host = impl_of(at::detail::getDefaultCPUGenerator());
  const std::scoped_lock locks(device.mutex_, host.mutex_);
  const at::mt19937 engine = host.engine();
  const auto next_float = host.next_float_normal_sample();
  const auto next_double = host.next_double_normal_sample();
  host.set_engine(device.engine());
  host.set_next_float_normal_sample(device.next_float_normal_sample());
  host.set_next_double_normal_sample(device.next_double_normal_sample());
  device.set_engine(engine);
  device.set_next_float_normal_sample(next_float);
  device.set_next_double_normal_sample(next_double);
}

}  // namespace hccl_torch_hpu
