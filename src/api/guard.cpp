// SPDX-License-Identifier: Apache-2.0
// Which code and text an exception becomes. Nothing here may throw: texts are copied, never built.
#include "api/guard.h"

#include "base/error.h"
#include "base/syn_error.h"

#include <exception>
#include <new>
#include <system_error>

namespace hccl::api {
namespace {

constexpr const char* kForkedChild =
    "the library cannot be used in a process forked from one that has initialised it: its threads "
    "live in the parent; fork before synInitialize(), or exec a new program in the child";
constexpr const char* kOutOfMemory =
    "out of host memory; free memory or raise the limit of this process";
constexpr const char* kUnknownException = "an exception of unknown type was thrown; report this";

// The status that says most nearly what a result does.
constexpr synStatus status_of(hcclResult_t result) noexcept {
  switch (result) {
    case hcclSuccess:
      return synSuccess;
    case hcclUninitialized:
      return synUninitialized;
    case hcclNoDeviceFound:
      return synNoDeviceFound;
    case hcclUnsupported:
      return synUnsupported;
    case hcclOutOfMemory:
      return synOutOfHostMemory;
    case hcclInvalidArgument:
      return synInvalidArgument;
    case hcclInvalidUsage:
      return synResourceBadUsage;
    case hcclSocketError:
    case hcclLibfabricError:
    case hcclPortDown:
      return synFailHccl;
    case hcclTryAgainError:
    case hcclBusy:
      return synBusy;
    case hcclSynapseTerminated:
      return synSynapseTerminated;
    default:
      return synFail;
  }
}

hcclResult_t fail(hcclResult_t result, const char* text) noexcept {
  last_hccl_error.set(synSuccess, text);
  return result;
}

synStatus fail(synStatus status, const char* text) noexcept {
  last_syn_error.set(status, text);
  return status;
}

}  // namespace

hcclResult_t hccl_result_of_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(hcclOutOfMemory, kOutOfMemory);
  } catch (const std::system_error& error) {
    return fail(hcclSystemError, error.what());
  } catch (const std::exception& error) {
    return fail(hcclInternalError, error.what());
  } catch (...) {
    return fail(hcclInternalError, kUnknownException);
  }
}

synStatus syn_status_of_exception() noexcept {
  try {
    throw;
  } catch (const SynError& error) {
    return fail(error.status(), error.what());
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(synOutOfHostMemory, kOutOfMemory);
  } catch (const std::exception& error) {
    return fail(synFail, error.what());
  } catch (...) {
    return fail(synFail, kUnknownException);
  }
}

hcclResult_t refuse_hccl_in_forked_child() noexcept { return fail(hcclInvalidUsage, kForkedChild); }

synStatus refuse_syn_in_forked_child() noexcept { return fail(synFail, kForkedChild); }

}  // namespace hccl::api
