// SPDX-License-Identifier: Apache-2.0
// Acquiring the device, streams and events.
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

Event::Event(const Stream& stream) {
  check(synEventCreate(&handle_, device(), 0), "synEventCreate");
  check(synEventRecord(handle_, stream.get()), "synEventRecord");
}

Event::~Event() { synEventDestroy(handle_); }

bool Event::has_ended() const { return synEventQuery(handle_) != synBusy; }

bool Event::synchronize() const { return synEventSynchronize(handle_) == synSuccess; }

}  // namespace hccl_torch
