// SPDX-License-Identifier: Apache-2.0
// Acquires the device and creates its streams.
#include "device.h"

#include "call.h"

namespace hccl_torch {

synDeviceId device() {
  static const synDeviceId acquired = [] {
    const synStatus status = synInitialize();
    if (status != synAlreadyInitialized) check(status, "synInitialize");
    synDeviceId id = 0;
    check(synDeviceAcquire(&id, nullptr), "synDeviceAcquire");
    return id;
  }();
  return acquired;
}

Stream::Stream() { check(synStreamCreateGeneric(&handle_, device(), 0), "synStreamCreateGeneric"); }

Stream::~Stream() { synStreamDestroy(handle_); }

std::uint64_t Stream::queued() const noexcept {
  std::uint64_t position = 0;
  hcclEmulationStreamPosition(handle_, &position, nullptr);
  return position;
}

bool StreamRange::has_run() const noexcept {
  std::uint64_t completed = 0;
  return hcclEmulationStreamPosition(stream->get(), nullptr, &completed) != hcclSuccess ||
         completed >= last;
}

hcclResult_t StreamRange::wait(std::uint64_t milliseconds) const noexcept {
  return hcclEmulationStreamWait(stream->get(), after, last, milliseconds);
}

}  // namespace hccl_torch
