// SPDX-License-Identifier: Apache-2.0
// Reports calls to functions that are not available in this version.
#include "api/unsupported.h"

#include "api/guard.h"
#include "base/error.h"
#include "base/syn_error.h"
#include "base/text.h"

namespace hccl::api {
namespace {

std::string explain(const char* function) {
  return text(function, " is not available on emulated devices; do without it");
}

}  // namespace

hcclResult_t unsupported_hccl(const char* function) noexcept {
  return guard(function, [=] { throw Error(hcclUnsupported, explain(function)); });
}

synStatus unsupported_syn(const char* function) noexcept {
  return syn_guard(function, [=] { throw SynError(synUnsupported, explain(function)); });
}

}  // namespace hccl::api
