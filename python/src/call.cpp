// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include <string_view>

#include <c10/util/Exception.h>

namespace hccl_torch {

// Replaces the library's advice on time-outs with advice for a process group.
std::string last_reason() {
  constexpr std::string_view kTheirs = "raise the limit that hcclEmulationSetTimeout has set";
  constexpr std::string_view kOurs = "give the group a longer timeout";
  std::string reason = hcclGetLastErrorMessage();
  for (auto at = reason.find(kTheirs); at != std::string::npos; at = reason.find(kTheirs, at))
    reason.replace(at, kTheirs.size(), kOurs);
  return reason;
}

void check(hcclResult_t result, const char* function) {
  TORCH_CHECK_WITH(DistBackendError, result == hcclSuccess, "hccl_torch: ", function,
                   " failed: ", last_reason());
}

void check(synStatus status, const char* function) {
  TORCH_CHECK_WITH(DistBackendError, status == synSuccess, "hccl_torch: ", function,
                   " failed: ", synGetLastErrorMessage());
}

}  // namespace hccl_torch
