// SPDX-License-Identifier: Apache-2.0
// Implements the hooks through which PyTorch's device-independent code finds the device.
#include "generator.h"
#include "pinned_memory.h"
#include "storage.h"
#include "streams.h"

#include <ATen/detail/HPUHooksInterface.h>

namespace hccl_torch_hpu {

namespace {

class HpuHooks final : public at::HPUHooksInterface {
 public:
  explicit HpuHooks(at::HPUHooksArgs /*arguments*/) {}

  void init() const override {}
  bool hasHPU() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex device) const override { return device <= 0; }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(visible_devices());
  }
  void setCurrentDevice(c10::DeviceIndex /*device*/) const override {}
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex /*device*/) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex /*device*/) const override { return 0; }
  c10::Device getDeviceFromPtr(void* /*memory*/) const override { return kHpu; }
  bool isPinnedPtr(const void* memory) const override { return PinnedMemory::contains(memory); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return PinnedMemory::allocator(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex /*device*/) const override {
    return default_generator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex /*device*/) const override {
    return make_generator();
  }
};

using at::HPUHooksRegistry;
using at::RegistererHPUHooksRegistry;
C10_REGISTER_CLASS(HPUHooksRegistry, HPUHooks, HpuHooks)  // PyTorch looks up this name

}  // namespace

}  // namespace hccl_torch_hpu
