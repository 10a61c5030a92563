// SPDX-License-Identifier: Apache-2.0
// Versions, descriptions of codes, and last errors. The functions that return last errors do not
// run in a guard, which would clear the error.
#include "api/copy_text.h"
#include "api/guard.h"
#include "api/last_error.h"
#include "api/status_texts.h"
#include "base/error.h"

#include <hccl.h>
#include <synapse_api.h>

namespace api = hccl::api;

hcclResult_t hcclGetVersion(int* version) {
  return api::guard(__func__, [&] {
    if (version == nullptr) {
      throw hccl::Error(hcclInvalidArgument,
                        "hcclGetVersion: version is null; pass the address of an int");
    }
    *version = HCCL_VERSION_CODE;
  });
}

const char* hcclGetErrorString(hcclResult_t result) { return api::result_text(result); }

const char* hcclGetLastErrorMessage() {
  const char* text = api::last_hccl_error.text();
  return *text == '\0' ? nullptr : text;
}

synStatus SYN_API_CALL synStatusGetBriefDescription(synStatus status, char* statusDescription,
                                                    size_t len) {
  if (statusDescription == nullptr || len == 0) {
    return api::log_failure(__func__, synInvalidArgument,
                            "statusDescription is null or len is 0; pass a buffer and its size");
  }
  api::copy_text(api::status_text(status), statusDescription, len);
  return synSuccess;
}

const char* SYN_API_CALL synGetErrorString(synStatus status) { return api::status_text(status); }

synStatus SYN_API_CALL synGetLastError() { return api::last_syn_error.status(); }

const char* SYN_API_CALL synGetLastErrorMessage() { return api::last_syn_error.text(); }
