// SPDX-License-Identifier: Apache-2.0
// The functions for streams.
#include "api/guard.h"
#include "api/handles.h"

#include <synapse_api.h>

using namespace hccl;
using namespace hccl::api;

namespace {

synStatus create_stream(Callee callee, synStreamHandle* pStreamHandle, synDeviceId deviceId,
                        uint32_t flags) {
  return syn_guard(callee, [&] {
    runtime().require_initialized();
    require_pointer(pStreamHandle, "pStreamHandle");
    if (flags != 0) throw SynError(synInvalidArgument, text("flags is ", flags, "; pass 0"));
    const auto device = runtime().device(deviceId);
    const std::uint64_t handle = runtime().streams().insert(device->create_stream());
    if (handle == 0) throw SynError(synOutOfResources, "too many streams; destroy some");
    *pStreamHandle = to_handle<synStreamHandle>(handle);
  });
}

}  // namespace

synStatus SYN_API_CALL synStreamCreateGeneric(synStreamHandle* pStreamHandle, synDeviceId deviceId,
                                              uint32_t flags) {
  return create_stream(__func__, pStreamHandle, deviceId, flags);
}

// Ignores the type and the flags, because all streams are generic.
synStatus SYN_API_CALL synStreamCreate(synStreamHandle* pStreamHandle, synDeviceId deviceId,
                                       synStreamType, uint32_t) {
  return create_stream(__func__, pStreamHandle, deviceId, 0);
}

synStatus SYN_API_CALL synStreamDestroy(synStreamHandle streamHandle) {
  return syn_guard(__func__, [&] {
    {
      const StreamPin pin = find_stream(streamHandle);
      // Runs the work before the handle becomes invalid, because other threads may need the stream
      // to make progress.
      pin->run_until(pin->pushed());
    }
    const auto stream = runtime().streams().remove(to_number(streamHandle));
    if (!stream)
      throw SynError(synInvalidArgument,
                     "another thread has destroyed the stream; destroy each stream only once");
    stream->device().destroy_stream(stream);
  });
}

synStatus SYN_API_CALL synStreamSynchronize(synStreamHandle streamHandle) {
  return syn_guard(__func__, [&] { return synchronize(*find_stream(streamHandle)); });
}

synStatus SYN_API_CALL synStreamQuery(synStreamHandle streamHandle) {
  return syn_queueing_guard(__func__, [&] { return query(*find_stream(streamHandle)); });
}

synStatus SYN_API_CALL synStreamWaitEvent(synStreamHandle streamHandle, synEventHandle eventHandle,
                                          uint32_t flags) {
  return syn_queueing_guard(__func__, [&] {
    if (flags != 0) throw SynError(synInvalidArgument, text("flags is ", flags, "; pass 0"));
    const StreamPin stream = find_stream(streamHandle);
    stream->follow(find_event(eventHandle)->capture());
  });
}

// Affinity selects engines of a real device, and has no effect here.
synStatus SYN_API_CALL synStreamSetAffinity(synDeviceId deviceId, synStreamHandle pStreamHandle,
                                            uint64_t) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    static_cast<void>(find_stream(pStreamHandle));
  });
}

synStatus SYN_API_CALL synStreamGetAffinity(synDeviceId deviceId, synStreamHandle pStreamHandle,
                                            uint64_t* streamAffinityMask) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    require_pointer(streamAffinityMask, "streamAffinityMask");
    static_cast<void>(runtime().device(deviceId));
    static_cast<void>(find_stream(pStreamHandle));
    *streamAffinityMask = 1;
  });
}

synStatus SYN_API_CALL synDeviceGetAffinityMaskRange(synDeviceId deviceId,
                                                     uint64_t* deviceAffinityMaskRange) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    require_pointer(deviceAffinityMaskRange, "deviceAffinityMaskRange");
    static_cast<void>(runtime().device(deviceId));
    *deviceAffinityMaskRange = 0xf;
  });
}

synStatus SYN_API_CALL synDeviceGetNextStreamAffinity(synDeviceId deviceId,
                                                      uint64_t* nextDeviceAffinity) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    require_pointer(nextDeviceAffinity, "nextDeviceAffinity");
    static_cast<void>(runtime().device(deviceId));
    static std::atomic<unsigned> next{0};
    *nextDeviceAffinity = 1ull << (next.fetch_add(1) % 4);
  });
}
