// SPDX-License-Identifier: Apache-2.0
// From the C API's handles and ids to objects, or to an error that says what was wrong.
#pragma once

#include "base/error.h"
#include "base/syn_error.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/group.h"
#include "device/runtime.h"

#include <hccl.h>
#include <synapse_api.h>

#include <cstdint>
#include <string>

namespace hccl::api {

using CommunicatorPin = HandleTable<comm::Communicator>::Pin;
using StreamPin = HandleTable<device::Stream>::Pin;
using EventPin = HandleTable<device::Event>::Pin;

// Handles are numbers in pointer's clothing; nobody dereferences them.
template <class Handle>
[[nodiscard]] Handle to_handle(std::uint64_t value) {
  return reinterpret_cast<Handle>(value);
}
[[nodiscard]] inline std::uint64_t to_number(const void* handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

[[nodiscard]] inline device::Runtime& runtime() { return device::Runtime::instance(); }

template <class Found>
[[nodiscard]] Found require_communicator(Found found) {
  if (!found)
    throw Error(hcclInvalidArgument,
                "unknown communicator: it was never made or is already destroyed");
  return found;
}

[[nodiscard]] inline CommunicatorPin find_communicator(hcclComm_t comm) {
  return require_communicator(comm::communicators().pin(to_number(comm)));
}

// For a group: an object that the program may destroy before the group ends.
[[nodiscard]] inline comm::CommunicatorHold hold_communicator(hcclComm_t comm) {
  return require_communicator(comm::communicators().hold(to_number(comm)));
}

// Throws SynError(synInvalidArgument), which hccl functions report as hcclInvalidArgument.
template <class Found>
[[nodiscard]] Found require_stream(Found found) {
  if (!found)
    throw SynError(synInvalidArgument,
                   "unknown stream: it is null, was never created or is already destroyed");
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
                   "unknown event: it is null, was never created or is already destroyed");
  return pin;
}

// Throws SynError(synInvalidArgument) naming the parameter.
inline void require_pointer(const void* pointer, const char* name) {
  if (pointer == nullptr) throw SynError(synInvalidArgument, text(name, " is null"));
}

// The status of work that was waited for.
[[nodiscard]] inline synStatus status_of(device::Outcome outcome) {
  if (outcome == device::Outcome::success) return synSuccess;
  if (outcome == device::Outcome::collective_failed) {
    throw SynError(synFailHccl,
                   "a collective of this stream has failed; hcclCommGetAsyncErrorMessage says why");
  }
  throw SynError(synFail, "a copy of this stream has failed; the log on stderr says why");
}

}  // namespace hccl::api
