// SPDX-License-Identifier: Apache-2.0
// The functions for events.
#include "api/guard.h"
#include "api/handles.h"

#include <synapse_api.h>

using namespace hccl;
using namespace hccl::api;

// Does not check the device id, because some programs pass a rank instead.
synStatus SYN_API_CALL synEventCreate(synEventHandle* pEventHandle, synDeviceId, uint32_t flags) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    require_pointer(pEventHandle, "pEventHandle");
    if ((flags & ~static_cast<uint32_t>(EVENT_COLLECT_TIME)) != 0) {
      throw SynError(synInvalidArgument,
                     text("flags is ", flags, "; pass 0 or EVENT_COLLECT_TIME"));
    }
    const std::uint64_t handle = runtime().events().insert(
        std::make_shared<device::Event>((flags & EVENT_COLLECT_TIME) != 0));
    if (handle == 0) throw SynError(synOutOfResources, "too many events; destroy some");
    *pEventHandle = to_handle<synEventHandle>(handle);
  });
}

synStatus SYN_API_CALL synEventDestroy(synEventHandle eventHandle) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    if (!runtime().events().remove(to_number(eventHandle))) {
      throw SynError(synInvalidEventHandle,
                     "unknown event: it was never created or has been destroyed");
    }
  });
}

synStatus SYN_API_CALL synEventRecord(synEventHandle eventHandle, synStreamHandle streamHandle) {
  return syn_queueing_guard(__func__, [&] {
    const StreamPin stream = find_stream(streamHandle);
    find_event(eventHandle)->record(*stream);
  });
}

synStatus SYN_API_CALL synEventQuery(synEventHandle eventHandle) {
  return syn_queueing_guard(__func__, [&] { return query(*find_event(eventHandle)); });
}

synStatus SYN_API_CALL synEventSynchronize(synEventHandle eventHandle) {
  return syn_guard(__func__, [&] { return synchronize(*find_event(eventHandle)); });
}

synStatus SYN_API_CALL synEventElapsedTime(uint64_t* pNanoSeconds,
                                           const synEventHandle eventHandleStart,
                                           const synEventHandle eventHandleEnd) {
  return syn_guard(probe(__func__), [&] {
    require_pointer(pNanoSeconds, "pNanoSeconds");
    const std::uint64_t start = find_event(eventHandleStart)->time();
    if (eventHandleEnd == nullptr) {
      *pNanoSeconds = start;
      return;
    }
    const std::uint64_t end = find_event(eventHandleEnd)->time();
    if (end < start)
      throw SynError(synInvalidArgument, "the end event completed before the start event");
    *pNanoSeconds = end - start;
  });
}
