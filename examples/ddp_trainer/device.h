// SPDX-License-Identifier: Apache-2.0
// A device with its streams, events and memory as C++ objects. A failed call to the library throws
// RunError with the reason; destructors ignore errors.
#pragma once

#include <hccl.h>
#include <synapse_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include <hccl_emulation.h>

namespace ddp_trainer {

// Throw RunError with the library's error text if the call has failed.
void check(synStatus status, const char* call);
void check(hcclResult_t result, const char* call);

// The Synapse runtime, and this process's only device.
class Device {
 public:
  explicit Device(int module);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] synDeviceId id() const { return id_; }
  // Releases the device and ends the runtime. Throws RunError if that fails.
  void release();

 private:
  synDeviceId id_ = SYN_INVALID_DEVICE_ID;
};

class Event {
 public:
  explicit Event(const Device& device);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  [[nodiscard]] synEventHandle handle() const { return handle_; }

 private:
  synEventHandle handle_ = nullptr;
};

class Stream {
 public:
  explicit Stream(const Device& device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] synStreamHandle handle() const { return handle_; }
  // Queues a callable as a kernel, and keeps it alive until it has run.
  template <class Kernel>
  void launch(Kernel kernel) {
    auto kept = std::make_unique<Kernel>(std::move(kernel));
    check(hcclEmulationLaunch(
              handle_,
              [](void* arguments) {
                const std::unique_ptr<Kernel> own(static_cast<Kernel*>(arguments));
                (*own)();
              },
              kept.get()),
          "hcclEmulationLaunch");
    static_cast<void>(kept.release());
  }
  void record(const Event& event);
  void wait_for(const Event& event);
  void synchronize();

 private:
  synStreamHandle handle_ = nullptr;
};

class Memory {
 public:
  Memory(const Device& device, std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] void* host() const { return host_; }

 private:
  synDeviceId device_;
  std::uint64_t address_ = 0;
  void* host_ = nullptr;
};

// Device memory for `Element`s. Kernels access it through host().
template <class Element>
class Buffer {
 public:
  Buffer(const Device& device, std::size_t count)
      : memory_(device, (count == 0 ? 1 : count) * sizeof(Element)), count_(count) {}

  [[nodiscard]] std::size_t count() const { return count_; }
  // Returns the device address of element `offset`, for collectives.
  [[nodiscard]] void* device(std::size_t offset = 0) const {
    const std::uint64_t address = memory_.address() + offset * sizeof(Element);
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the API's type
  }
  // Returns the host address of the elements, for kernels.
  [[nodiscard]] Element* host() const { return static_cast<Element*>(memory_.host()); }

 private:
  Memory memory_;
  std::size_t count_;
};

}  // namespace ddp_trainer
