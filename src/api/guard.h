// SPDX-License-Identifier: Apache-2.0
// The boundary between C++ and C. Every exported function that may throw runs its body in a guard,
// which turns an exception into a code, a last-error text and a log line.
#pragma once

#include "api/last_error.h"
#include "base/cancellation.h"
#include "base/config.h"
#include "base/process.h"

#include <hccl_types.h>

#include <type_traits>

namespace hccl::api {

// The exported function that a guard runs: pass __func__. The name is used only if the call fails.
struct Callee {
  // NOLINTNEXTLINE(google-explicit-constructor): most callers pass only __func__
  constexpr Callee(const char* name_in, LogLevel level_in = LogLevel::warning,
                   bool tries_modules_in = false)
      : name(name_in), level(level_in), tries_modules(tries_modules_in) {}

  const char* name;
  LogLevel level;      // of the log line about a failure of the function
  bool tries_modules;  // see trying_modules()
};

// Returns the Callee of a function whose failures programs expect, such as a query. The failures
// are logged at level info.
[[nodiscard]] constexpr Callee probe(const char* name) { return {name, LogLevel::info}; }

// Returns the Callee of a function with which programs try one module after another until one is
// free. If a module is held, the failure is not logged at once: FailureLog::note() keeps it, and
// forgive_unavailable_module() may drop it.
[[nodiscard]] constexpr Callee trying_modules(const char* name) {
  return {name, LogLevel::warning, true};
}
// Drops this thread's failure to acquire a module from the failure log, if it has not been logged
// yet. Call when the thread has acquired a device.
void forgive_unavailable_module() noexcept;

// Returns the Callee of a function that calls another exported function. The other function logs
// the failure, so this one logs it only at level debug.
[[nodiscard]] constexpr Callee forwarder(const char* name) { return {name, LogLevel::debug}; }

// Turn the current exception into a code, this thread's last error, and a line in the log. Call
// only in an exception handler.
[[nodiscard]] hcclResult_t hccl_result_of_exception(Callee callee) noexcept;
[[nodiscard]] synStatus syn_status_of_exception(Callee callee) noexcept;

// Refuse a call in a forked child, where the library's threads do not exist: set the last error,
// log it, and return the code.
[[nodiscard]] hcclResult_t refuse_hccl_in_forked_child(Callee callee) noexcept;
[[nodiscard]] synStatus refuse_syn_in_forked_child(Callee callee) noexcept;

// Logs the failure of a function that does not set the last error, and returns `status`.
[[nodiscard]] synStatus log_failure(Callee callee, synStatus status, const char* text) noexcept;

// Logs the failure of queued work, which may occur after the call that queued it has succeeded.
// `name` is a string literal.
void log_failed_work(const char* name, hcclResult_t code, const char* text) noexcept;

// Flushes the failure log. Does nothing in a forked child, where the recorded failures are the
// parent's.
void report_repeated_failures() noexcept;

// Runs `body`, which returns an hcclResult_t, or nothing if it reports failures only by throwing.
// If `body` throws, returns the exception's code. In a forked child, refuses the call. Does not
// block cancellation of the thread, because that would cost 10 ns: use it for calls that only queue
// or query work. The few slow paths of these calls block cancellation themselves.
template <class Body>
[[nodiscard]] hcclResult_t queueing_guard(Callee callee, Body&& body) noexcept {
  last_hccl_error.clear();
  if (is_forked_child()) [[unlikely]]
    return refuse_hccl_in_forked_child(callee);
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
      body();
      return hcclSuccess;
    } else {
      return body();
    }
  } catch (...) {
    return hccl_result_of_exception(callee);
  }
}

// Runs `body` like queueing_guard(), with cancellation of the thread blocked.
template <class Body>
[[nodiscard]] hcclResult_t guard(Callee callee, Body&& body) noexcept {
  const CancellationBlock block;
  return queueing_guard(callee, body);
}

// Like queueing_guard(), for syn functions. A status that `body` returns, such as synBusy, becomes
// the last status, with an empty error text, and is not logged.
template <class Body>
[[nodiscard]] synStatus syn_queueing_guard(Callee callee, Body&& body) noexcept {
  last_syn_error.clear();
  if (is_forked_child()) [[unlikely]]
    return refuse_syn_in_forked_child(callee);
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
      body();
      return synSuccess;
    } else {
      const synStatus status = body();
      if (status != synSuccess) last_syn_error.set_status(status);
      return status;
    }
  } catch (...) {
    return syn_status_of_exception(callee);
  }
}

template <class Body>
[[nodiscard]] synStatus syn_guard(Callee callee, Body&& body) noexcept {
  const CancellationBlock block;
  return syn_queueing_guard(callee, body);
}

}  // namespace hccl::api
