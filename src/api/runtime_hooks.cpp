// SPDX-License-Identifier: Apache-2.0
// The C++ functions that tools look up by their mangled names.
#include "api/runtime_hooks.h"

#include "api/copy_text.h"
#include "api/guard.h"
#include "api/handles.h"
#include "api/unsupported.h"
#include "api/version.h"
#include "base/error.h"
#include "base/log.h"
#include "base/syn_error.h"

#include <synapse_api.h>

#include <string>
#include <utility>

namespace api = hccl::api;
using hccl::Error;

namespace {

// Returns hcclSuccess if the syn function has succeeded. Otherwise throws a SynError, which guard()
// in the calling hccl function translates to a result code.
hcclResult_t forward(synStatus status) {
  if (status == synSuccess) return hcclSuccess;
  throw hccl::SynError(status, synGetLastErrorMessage());
}

hcclResult_t succeed(const char* function) {
  return api::guard(function, [] {});
}

}  // namespace

hcclResult_t hcclInitDevice(const synDeviceId) { return succeed(__func__); }

hcclResult_t hcclInitDeviceGaudi(const synDeviceId) { return succeed(__func__); }

hcclResult_t hcclDestroyDevice(const synDeviceId) { return succeed(__func__); }

hcclResult_t hcclEventRecord(hcclEventHandle*, synStreamHandle streamHandle) {
  if (streamHandle != nullptr) return api::unsupported_hccl(__func__);
  return api::guard(__func__, [] {
    throw Error(
        hcclInvalidArgument,
        "hcclEventRecord: the stream is null; pass one that synStreamCreateGeneric returned");
  });
}

hcclResult_t hcclSynchronizeEvent(const hcclEventHandle&, std::uint64_t) {
  return api::unsupported_hccl(__func__);
}

hcclResult_t hcclFlushSubmissions(synStreamHandle) { return succeed(__func__); }

hcclResult_t hcclFlushSubmissionsAllStreams() { return succeed(__func__); }

hcclResult_t hcclSynchronizeStream(synStreamHandle streamHandle) {
  return api::guard(api::forwarder(__func__),
                    [=] { return forward(synStreamSynchronize(streamHandle)); });
}

hcclResult_t hcclSynchronizeAllStreams() {
  return api::guard(__func__, [] {
    using hccl::device::Outcome;
    api::runtime().require_initialized();
    Outcome first = Outcome::success;  // the first failure, reported after the wait for all devices
    std::string reason;
    for (const auto& device : api::runtime().devices()) {
      std::string why;
      const Outcome outcome = device->synchronize(&why);
      if (first != Outcome::success || outcome == Outcome::success) continue;
      first = outcome;
      reason = std::move(why);
    }
    static_cast<void>(api::status_of(first, reason));
  });
}

hcclResult_t hcclDFA(DfaStatus&, void (*)(int, const char*)) {
  return api::guard(__func__, [] {
    hccl::log(hccl::LogLevel::warning, "api",
              "the program requested a device failure report; emulated devices have none");
  });
}

hcclResult_t hcclDfaUpdateState(DfaPhase) { return succeed(__func__); }

hcclResult_t hcclGetVersionString(char* pVersion, const unsigned len) {
  return api::guard(__func__, [=] {
    if (pVersion == nullptr || len == 0) {
      throw Error(hcclInvalidArgument,
                  "hcclGetVersionString: pVersion is null or len is 0; pass a buffer and its size");
    }
    api::copy_text(api::kVersionText, pVersion, len);
  });
}

bool hcclIsACcbHalfFull(const unsigned) { return false; }

void hcclSetTraceMarker(const synStreamHandle, std::uint32_t) {}
