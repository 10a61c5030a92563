// SPDX-License-Identifier: Apache-2.0
// The functions of the profiler. They record nothing, and exist so that programs can run with
// profiling turned on.
#include "api/guard.h"
#include "api/handles.h"

#include <synapse_api.h>

using namespace hccl;
using namespace hccl::api;

namespace {

void check_device(synDeviceId device) {
  runtime().require_initialized();
  static_cast<void>(runtime().device(device));
}

void check_type(synTraceType type) {
  if (type < synTraceAll || type >= synTraceTypeSize)
    throw SynError(synInvalidArgument, text("type is ", static_cast<int>(type),
                                            "; pass synTraceAll, synTraceHost or synTraceDevice"));
}

synStatus start_or_stop(Callee callee, synTraceType type, synDeviceId device) {
  return syn_guard(callee, [&] {
    check_device(device);
    check_type(type);
  });
}

// Checks the arguments of an entry that the program adds to the trace. Does not store the entry.
synStatus accept(Callee callee, const char* description) {
  return syn_guard(callee, [&] {
    runtime().require_initialized();
    require_pointer(description, "description");
  });
}

}  // namespace

synStatus SYN_API_CALL synProfilerQueryRequiredMemory(synDeviceId deviceId,
                                                      uint32_t* bytesRequired) {
  return syn_guard(__func__, [&] {
    check_device(deviceId);
    require_pointer(bytesRequired, "bytesRequired");
    *bytesRequired = 0;
  });
}

synStatus SYN_API_CALL synProfilerSetUserBuffer(const synDeviceId deviceId, void*) {
  return syn_guard(__func__, [&] { check_device(deviceId); });
}

synStatus SYN_API_CALL synProfilerStart(synTraceType type, const synDeviceId deviceId) {
  return start_or_stop(__func__, type, deviceId);
}

synStatus SYN_API_CALL synProfilerStop(synTraceType type, const synDeviceId deviceId) {
  return start_or_stop(__func__, type, deviceId);
}

synStatus SYN_API_CALL synProfilerGetTrace(synTraceType type, const synDeviceId deviceId,
                                           synTraceFormat, void*, size_t* size,
                                           size_t* numEntries) {
  return syn_guard(__func__, [&] {
    check_device(deviceId);
    check_type(type);
    if (size != nullptr) *size = 0;
    if (numEntries != nullptr) *numEntries = 0;
  });
}

synStatus SYN_API_CALL synProfilerAddCustomMeasurement(const char* description, uint64_t) {
  return accept(__func__, description);
}

synStatus SYN_API_CALL synProfilerAddCustomMeasurementArgs(const char* description, uint64_t,
                                                           const char**, size_t) {
  return accept(__func__, description);
}

synStatus SYN_API_CALL synProfilerAddCustomMeasurementArgsAndThread(const char* description,
                                                                    uint64_t, const char**, size_t,
                                                                    const char*) {
  return accept(__func__, description);
}

synStatus SYN_API_CALL synProfilerAddCustomEvent(const char* description, uint64_t, uint64_t,
                                                 const char**, size_t) {
  return accept(__func__, description);
}

synStatus SYN_API_CALL synProfilerGetCurrentTimeNS(uint64_t* nanoTime) {
  return syn_guard(__func__, [&] {
    require_pointer(nanoTime, "nanoTime");
    *nanoTime = device::Event::now();
  });
}
