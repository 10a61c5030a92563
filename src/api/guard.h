// SPDX-License-Identifier: Apache-2.0
// The border between C++ and C: every exported function runs its body in a guard, the only place
// where exceptions become codes and last-error texts. A call that succeeds pays for two stores
// and one test.
#pragma once

#include "api/last_error.h"
#include "base/process.h"

#include <hccl_types.h>

#include <type_traits>

namespace hccl::api {

// Turn the exception being handled into a code and this thread's last error. Call them in a handler
// only.
[[nodiscard]] hcclResult_t hccl_result_of_exception() noexcept;
[[nodiscard]] synStatus syn_status_of_exception() noexcept;

// Answers in a forked child, where the library's threads do not exist.
[[nodiscard]] hcclResult_t refuse_hccl_in_forked_child() noexcept;
[[nodiscard]] synStatus refuse_syn_in_forked_child() noexcept;

// Runs `body`, which returns an hcclResult_t or nothing (hcclSuccess).
template <class Body>
[[nodiscard]] hcclResult_t guard(Body&& body) noexcept {
  last_hccl_error.clear();
  if (is_forked_child()) [[unlikely]]
    return refuse_hccl_in_forked_child();
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
      body();
      return hcclSuccess;
    } else {
      return body();
    }
  } catch (...) {
    return hccl_result_of_exception();
  }
}

// The same for syn functions. A status that `body` returns, such as synBusy, becomes the last
// status without a text.
template <class Body>
[[nodiscard]] synStatus syn_guard(Body&& body) noexcept {
  last_syn_error.clear();
  if (is_forked_child()) [[unlikely]]
    return refuse_syn_in_forked_child();
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
    return syn_status_of_exception();
  }
}

}  // namespace hccl::api
