// SPDX-License-Identifier: Apache-2.0
// Registers the device's guard, streams, events and timers with PyTorch.
#include "autograd_thread.h"
#include "storage.h"
#include "streams.h"

#include <chrono>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

namespace hccl_torch_hpu {

namespace {

using Clock = std::chrono::steady_clock;

struct Event {
  synEventHandle handle = nullptr;
  Clock::time_point time;
};

void require(synStatus status, const char* call) {
  TORCH_CHECK(status == synSuccess, "hccl_torch_hpu: ", call, " returned ", status, ": ",
              synGetLastErrorMessage());
}

class HpuGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kHPU; }

  // Returns the current device. A process has only one device, so the current device never changes.
  c10::Device exchangeDevice(c10::Device /*device*/) const override { return kHpu; }
  c10::Device getDevice() const override { return kHpu; }
  void setDevice(c10::Device /*device*/) const override { AutogradThread::notice_task(); }
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(visible_devices());
  }
  c10::DeviceCapability getDeviceCapability(c10::Device /*device*/) const override { return {}; }

  c10::Stream getStream(c10::Device /*device*/) const override {
    return stream(Streams::current());
  }
  c10::Stream getDefaultStream(c10::Device /*device*/) const override { return stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device /*device*/, bool /*priority*/) const override {
    return stream(Streams::make());
  }
  c10::Stream getNewStream(c10::Device /*device*/, int /*priority*/) const override {
    return stream(Streams::make());
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    return stream(Streams::exchange_current(next.id()));
  }
  void* getStreamNativeHandle(c10::Stream one) const override { return Streams::handle(one.id()); }
  bool queryStream(const c10::Stream& one) const override { return Streams::is_idle(one.id()); }
  void synchronizeStream(const c10::Stream& one) const override { Streams::synchronize(one.id()); }
  void synchronizeDevice(c10::DeviceIndex /*device*/) const override { Streams::synchronize_all(); }

  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    if (event == nullptr) return;
    synEventDestroy(static_cast<Event*>(event)->handle);
    delete static_cast<Event*>(event);
  }
  void record(void** event, const c10::Stream& one, c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) {
      auto made = std::make_unique<Event>();
      require(synEventCreate(&made->handle, hccl_torch::device(), 0), "synEventCreate");
      *event = made.release();
    }
    auto* const recorded = static_cast<Event*>(*event);
    require(synEventRecord(recorded->handle, Streams::handle(one.id())), "synEventRecord");
    recorded->time = Clock::now();
  }
  // Blocks the caller, because later operations run as soon as they are called.
  void block(void* event, const c10::Stream& /*stream*/) const override { synchronizeEvent(event); }
  bool queryEvent(void* event) const override {
    return event == nullptr || synEventQuery(static_cast<Event*>(event)->handle) == synSuccess;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr)
      require(synEventSynchronize(static_cast<Event*>(event)->handle), "synEventSynchronize");
  }
  double elapsedTime(void* first, void* last, c10::DeviceIndex /*device*/) const override {
    TORCH_CHECK(first != nullptr && last != nullptr,
                "Both events must be recorded before calculating elapsed time.");
    return std::chrono::duration<double, std::milli>(static_cast<Event*>(last)->time -
                                                     static_cast<Event*>(first)->time)
        .count();
  }

 private:
  static c10::Stream stream(std::int64_t number) {
    return c10::Stream(c10::Stream::UNSAFE, kHpu, number);
  }
};

C10_REGISTER_GUARD_IMPL(HPU, HpuGuard)

}  // namespace

}  // namespace hccl_torch_hpu

namespace c10d {

namespace {

// Measures times for DistributedDataParallel's statistics.
class HpuTimer final : public Timer {
 public:
  explicit HpuTimer(c10::Device /*device*/) {}

  std::optional<std::int64_t> measureDifference(Event start, Event end) override {
    const std::optional<std::int64_t> from = getTimestamp(start);
    const std::optional<std::int64_t> to = getTimestamp(end);
    if (!from || !to || *to < *from) return std::nullopt;
    return *to - *from;
  }
};

C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kHPU, HpuTimer)

}  // namespace

}  // namespace c10d
