// SPDX-License-Identifier: Apache-2.0
// Finds the objects that C API handles and ids identify. Throws Error for an unknown handle or id.
#pragma once

#include "api/copy_text.h"
#include "base/cancellation.h"
#include "base/config.h"
#include "base/error.h"
#include "base/syn_error.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/group.h"
#include "device/runtime.h"

#include <hccl.h>
#include <synapse_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hccl::api {

using CommunicatorPin = HandleTable<comm::Communicator>::Pin;
using StreamPin = HandleTable<device::Stream>::Pin;
using EventPin = HandleTable<device::Event>::Pin;

// Convert between a handle and its number. Handles have pointer types but are never dereferenced.
template <class Handle>
[[nodiscard]] Handle to_handle(std::uint64_t value) {
  return reinterpret_cast<Handle>(value);
}
[[nodiscard]] inline std::uint64_t to_number(const void* handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

[[nodiscard]] inline device::Runtime& runtime() { return device::Runtime::instance(); }

// Returns the device to which `address` belongs, whether or not the address is allocated. `name` is
// the parameter's name in the error text. Throws Error(hcclInvalidArgument) if `address` is not a
// device address, or if this process does not hold the device.
[[nodiscard]] inline std::shared_ptr<device::Device> device_with(std::uint64_t address,
                                                                 const char* name) {
  if (!device::is_device_address(address)) {
    throw Error(hcclInvalidArgument, text(name, " 0x", std::hex, address,
                                          " is not a device address; pass one that synDeviceMalloc "
                                          "returned"));
  }
  return runtime().device(device::device_of(address));
}

template <class Found>
[[nodiscard]] Found require_communicator(Found found) {
  if (!found)
    throw Error(hcclInvalidArgument,
                "unknown communicator: it was never created or has been destroyed; pass one that "
                "hcclCommInitRank returned");
  return found;
}

[[nodiscard]] inline CommunicatorPin find_communicator(hcclComm_t comm) {
  return require_communicator(comm::communicators().pin(to_number(comm)));
}

// Returns a hold, not a pin: an open group keeps the communicator until hcclGroupEnd(), and a pin
// would block a thread that aborts or destroys the communicator before then.
[[nodiscard]] inline comm::CommunicatorHold hold_communicator(hcclComm_t comm) {
  return require_communicator(comm::communicators().hold(to_number(comm)));
}

// Returns `found`, or throws SynError(synInvalidArgument) if no stream was found.
template <class Found>
[[nodiscard]] Found require_stream(Found found) {
  if (!found)
    throw SynError(synInvalidArgument,
                   "unknown stream: it is null, was never created or has been destroyed; pass one "
                   "that synStreamCreateGeneric returned");
  return found;
}

[[nodiscard]] inline StreamPin find_stream(const void* stream) {
  runtime().require_initialized();
  return require_stream(runtime().streams().pin(to_number(stream)));
}

[[nodiscard]] inline comm::StreamHold hold_stream(const void* stream) {
  runtime().require_initialized();
  return require_stream(runtime().streams().hold(to_number(stream)));
}

[[nodiscard]] inline EventPin find_event(const void* event) {
  runtime().require_initialized();
  EventPin pin = runtime().events().pin(to_number(event));
  if (!pin)
    throw SynError(synInvalidEventHandle,
                   "unknown event: it is null, was never created or has been destroyed; pass one "
                   "that synEventCreate returned");
  return pin;
}

// Throws SynError(synInvalidArgument) if `pointer`, the parameter `name`, is null.
inline void require_pointer(const void* pointer, const char* name) {
  if (pointer == nullptr)
    throw SynError(synInvalidArgument,
                   text(name, " is null; pass the address of a variable or buffer"));
}

// Copies `value`, truncated to fit, to `out`, a buffer of `len` bytes. Throws
// SynError(synInvalidArgument) if `out`, the parameter `name`, is null or `len` is less than 1.
inline void give_text(std::string_view value, char* out, int len, const char* name) {
  require_pointer(out, name);
  if (len <= 0) throw SynError(synInvalidArgument, "len must be at least 1");
  copy_text(value, out, static_cast<std::size_t>(len));
}

// Returns synSuccess if the work has succeeded. Throws SynError with the reason if it has failed.
[[nodiscard]] inline synStatus status_of(device::Outcome outcome, const std::string& reason) {
  if (outcome == device::Outcome::success) return synSuccess;
  if (outcome == device::Outcome::collective_failed)
    throw SynError(synFailHccl, text("a collective failed: ", reason));
  throw SynError(
      synFail, text("a copy or memset failed, and the work queued after it did not run: ", reason));
}

// Blocks until the work of a stream, an event or a device has completed. Throws SynError if any of
// the work has failed.
template <class Awaited>
[[nodiscard]] synStatus synchronize(Awaited& awaited) {
  std::string reason;
  const device::Outcome outcome = awaited.synchronize(&reason);
  return status_of(outcome, reason);
}

// With HCCL_BLOCKING, blocks until all work on the stream has run. Defers thread cancellation while
// it waits. Throws SynError if work has failed.
inline void wait_if_blocking(device::Stream& stream) {
  if (!blocking_mode()) [[likely]]
    return;
  const CancellationBlock block;
  static_cast<void>(synchronize(stream));
}

// Returns synSuccess if the work of a stream or an event has completed, and synBusy if not. Throws
// SynError if work has failed.
template <class Awaited>
[[nodiscard]] synStatus query(Awaited& awaited) {
  device::Outcome outcome{};
  std::string reason;
  return awaited.query(&outcome, &reason) ? status_of(outcome, reason) : synBusy;
}

}  // namespace hccl::api
