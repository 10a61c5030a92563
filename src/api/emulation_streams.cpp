// SPDX-License-Identifier: Apache-2.0
// The functions of hccl_emulation.h that observe the work of streams or wait for it, and
// hcclEmulationSetTimeout.
#include "api/guard.h"
#include "api/handles.h"
#include "base/deadline.h"
#include "base/error.h"
#include "base/text.h"
#include "device/notifier.h"
#include "device/verified_buffers.h"

#include <algorithm>
#include <chrono>

#include <hccl_emulation.h>

using namespace hccl;
using namespace hccl::api;

namespace {

// Throws Error(hcclInvalidArgument) unless after <= up_to and the work up to `up_to` has been
// queued.
void check_range(const device::Stream& stream, std::uint64_t after, std::uint64_t up_to) {
  if (after > up_to) {
    throw Error(hcclInvalidArgument, text("after is ", after, ", but up_to is only ", up_to,
                                          "; pass the earlier position first"));
  }
  if (const std::uint64_t queued = stream.pushed(); up_to > queued) {
    throw Error(hcclInvalidArgument,
                text("up_to is ", up_to, ", but the stream has only ", queued,
                     " pieces of work; pass a position that hcclEmulationStreamPosition wrote"));
  }
}

// Ten years: longer than any program waits, and short enough that the deadline does not overflow.
constexpr std::uint64_t kLongestWaitMs = 10ull * 365 * 24 * 3600 * 1000;

bool wait_for(device::Stream& stream, std::uint64_t up_to, std::uint64_t timeout_ms) {
  if (timeout_ms == HCCL_EMULATION_NO_TIMEOUT) {
    stream.run_until(up_to);
    return true;
  }
  if (timeout_ms == 0) {
    if (stream.progress()->reached(up_to)) return true;
    stream.hurry();
    return false;
  }
  const std::chrono::milliseconds limit(std::min(timeout_ms, kLongestWaitMs));
  return stream.wait_until(up_to, Deadline::after(limit));
}

}  // namespace

hcclResult_t hcclEmulationSetTimeout(hcclComm_t comm, uint64_t milliseconds) {
  return guard(__func__, [&] { find_communicator(comm)->set_wait_limit(milliseconds); });
}

hcclResult_t hcclEmulationStreamPosition(void* stream_handle, uint64_t* queued,
                                         uint64_t* completed) {
  return queueing_guard(__func__, [&] {
    const StreamPin stream = find_stream(stream_handle);
    // `completed` is read first, so that it never exceeds `queued`.
    if (completed != nullptr) {
      *completed = stream->progress()->completed();
      device::HostEpoch::advance();
    }
    if (queued != nullptr) *queued = stream->pushed();
  });
}

hcclResult_t hcclEmulationStreamWait(void* stream_handle, uint64_t after, uint64_t up_to,
                                     uint64_t timeout_ms) {
  return guard(__func__, [&] {
    const StreamPin stream = find_stream(stream_handle);
    check_range(*stream, after, up_to);
    if (!wait_for(*stream, up_to, timeout_ms)) return hcclBusy;
    device::HostEpoch::advance();
    const auto failure = stream->progress()->failure_in(after, up_to);
    if (failure == nullptr) return hcclSuccess;
    stream->progress()->report(after, up_to, stream->pushed());
    throw Error(failure->code, failure->text);
  });
}

hcclResult_t hcclEmulationStreamNotify(void* stream_handle, uint64_t after, uint64_t up_to,
                                       void (*callback)(hcclResult_t result, const char* message,
                                                        void* argument),
                                       void* argument) {
  return guard(__func__, [&] {
    if (callback == nullptr)
      throw Error(hcclInvalidArgument, "callback is null; pass the function to call");
    const StreamPin stream = find_stream(stream_handle);
    check_range(*stream, after, up_to);
    device::Notifier::instance().add(*stream, {after, up_to, callback, argument});
  });
}
