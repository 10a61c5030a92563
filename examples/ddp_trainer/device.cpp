// SPDX-License-Identifier: Apache-2.0
// Calls the Synapse runtime and checks the results.
#include "device.h"

#include "errors.h"

#include <string>

namespace ddp_trainer {
namespace {

std::string behind(const char* message) {
  return message == nullptr || *message == '\0' ? "" : text(": ", message);
}

}  // namespace

void check(synStatus status, const char* call) {
  if (status == synSuccess) return;
  const std::string reason = behind(synGetLastErrorMessage());
  throw RunError(text(call, ": ", synGetErrorString(status), reason));
}

void check(hcclResult_t result, const char* call) {
  if (result == hcclSuccess) return;
  const std::string reason = behind(hcclGetLastErrorMessage());
  throw RunError(text(call, ": ", hcclGetErrorString(result), reason));
}

Device::Device(int module) {
  check(synInitialize(), "synInitialize");
  // If this module cannot be acquired, for example because another program uses it, acquires any
  // free module.
  if (synDeviceAcquireByModuleId(&id_, static_cast<synModuleId>(module)) != synSuccess)
    check(synDeviceAcquire(&id_, nullptr), "synDeviceAcquire");
}

Device::~Device() {
  if (id_ == SYN_INVALID_DEVICE_ID) return;
  synDeviceRelease(id_);
  synDestroy();
}

void Device::release() {
  check(synDeviceRelease(id_), "synDeviceRelease");
  id_ = SYN_INVALID_DEVICE_ID;
  check(synDestroy(), "synDestroy");
}

Event::Event(const Device& device) {
  check(synEventCreate(&handle_, device.id(), 0), "synEventCreate");
}

Event::~Event() { synEventDestroy(handle_); }

Stream::Stream(const Device& device) {
  check(synStreamCreateGeneric(&handle_, device.id(), 0), "synStreamCreateGeneric");
}

Stream::~Stream() { synStreamDestroy(handle_); }

void Stream::record(const Event& event) {
  check(synEventRecord(event.handle(), handle_), "synEventRecord");
}

void Stream::wait_for(const Event& event) {
  check(synStreamWaitEvent(handle_, event.handle(), 0), "synStreamWaitEvent");
}

void Stream::synchronize() { check(synStreamSynchronize(handle_), "synStreamSynchronize"); }

Memory::Memory(const Device& device, std::size_t bytes) : device_(device.id()) {
  check(synDeviceMalloc(device_, bytes, 0, 0, &address_),
        text("synDeviceMalloc of ", bytes, " bytes").c_str());
  const hcclResult_t result = hcclEmulationHostView(address_, bytes, &host_);
  if (result != hcclSuccess) synDeviceFree(device_, address_, 0);
  check(result, "hcclEmulationHostView");
}

Memory::~Memory() { synDeviceFree(device_, address_, 0); }

}  // namespace ddp_trainer
