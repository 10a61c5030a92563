// SPDX-License-Identifier: Apache-2.0
// HCCL functions that are exported but not available in this version.
#include "api/guard.h"
#include "api/unsupported.h"
#include "base/error.h"

#include <hccl.h>

using hccl::api::unsupported_hccl;

// Not a matter of the version: the interface drives one device per process.
hcclResult_t hcclCommInitAll(hcclComm_t*, int, const int*) {
  return hccl::api::guard([] {
    throw hccl::Error(hcclInvalidUsage,
                      "hcclCommInitAll is not available: a process drives one device; start one "
                      "process per device and call hcclCommInitRank in each");
  });
}

// Returns int and not a result code: callers test for a negative value, and a positive one is an
// error of theirs.
// NOLINTNEXTLINE(readability-non-const-parameter): the type is the API's
int hcclLookupDMABuff(uint64_t, uint64_t, int* fd) {
  if (fd == nullptr) {
    return hccl::api::guard([] {
      throw hccl::Error(hcclInvalidArgument,
                        "hcclLookupDMABuff: fd is null; pass the address of an int");
    });
  }
  return -unsupported_hccl(__func__);
}
