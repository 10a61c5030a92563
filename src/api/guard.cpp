// SPDX-License-Identifier: Apache-2.0
// Turns exceptions into codes, texts and log lines. Nothing here may throw, so texts are copied but
// never built.
#include "api/guard.h"

#include "api/failure_log.h"
#include "api/status_texts.h"
#include "base/error.h"
#include "base/log.h"
#include "base/syn_error.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

namespace hccl::api {
namespace {

constexpr const char* kForkedChild =
    "the library cannot be used in a process forked after synInitialize(), because the library's "
    "threads exist only in the parent; fork before synInitialize(), or exec a new program in the "
    "child";
constexpr const char* kOutOfMemory =
    "out of host memory; free memory or raise the limit of this process";
constexpr const char* kUnknownException =
    "an exception of unknown type was thrown; report this bug";

// Returns the synStatus that is closest in meaning to `result`.
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

constinit FailureLog failure_log;

// Reads the environment variables of the log, because a call may fail before synInitialize() reads
// them. If the log file cannot be opened, lines go to stderr. Also registers
// report_repeated_failures() to run at exit.
void prepare_log() noexcept {
  try {
    load_log_settings();
  } catch (...) {
  }
  static const int registered = std::atexit(report_repeated_failures);
  static_cast<void>(registered);
}

void report(const FailedCall& call) noexcept {
  if (is_forked_child()) {
    // Does not use the failure log: another thread of the parent may have held its lock at the
    // fork.
    static std::atomic_flag reported;
    if (log_enabled(call.level) && !reported.test_and_set())
      log_parts(call.level, "api", {call.function, " failed: ", call.code_name, ": ", call.text});
    return;
  }
  prepare_log();
  failure_log.note(call, std::chrono::steady_clock::now());
}

hcclResult_t report(Callee callee, hcclResult_t result) noexcept {
  report({callee.name, result_name(result), result, last_hccl_error.text(), callee.level,
          result == hcclUnsupported});
  return result;
}

synStatus report(Callee callee, synStatus status, const char* text) noexcept {
  report({callee.name, status_name(status), status, text, callee.level, status == synUnsupported,
          callee.tries_modules && status == synUnavailable});
  return status;
}

hcclResult_t fail(hcclResult_t result, const char* text) noexcept {
  last_hccl_error.set(synSuccess, text);
  return result;
}

synStatus fail(synStatus status, const char* text) noexcept {
  last_syn_error.set(status, text);
  return status;
}

hcclResult_t record_hccl_exception() noexcept {
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

synStatus record_syn_exception() noexcept {
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

}  // namespace

hcclResult_t hccl_result_of_exception(Callee callee) noexcept {
  return report(callee, record_hccl_exception());
}

synStatus syn_status_of_exception(Callee callee) noexcept {
  const synStatus status = record_syn_exception();
  return report(callee, status, last_syn_error.text());
}

hcclResult_t refuse_hccl_in_forked_child(Callee callee) noexcept {
  return report(callee, fail(hcclInvalidUsage, kForkedChild));
}

synStatus refuse_syn_in_forked_child(Callee callee) noexcept {
  return report(callee, fail(synFail, kForkedChild), kForkedChild);
}

synStatus log_failure(Callee callee, synStatus status, const char* text) noexcept {
  return report(callee, status, text);
}

void log_failed_work(const char* name, hcclResult_t code, const char* text) noexcept {
  report({name, result_name(code), code, text, LogLevel::error});
}

void forgive_unavailable_module() noexcept { failure_log.forgive(); }

void report_repeated_failures() noexcept {
  if (!is_forked_child()) failure_log.flush();  // a child inherits the parent's failures
}

}  // namespace hccl::api
