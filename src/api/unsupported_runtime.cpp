// SPDX-License-Identifier: Apache-2.0
// Runtime functions that are exported but not available in this version: error objects, kernel
// libraries.
#include "api/unsupported.h"

#include <synapse_api.h>

using hccl::api::unsupported_syn;

synStatus SYN_API_CALL synErrorDestroy(synErrorHandle) { return unsupported_syn(__func__); }

synStatus SYN_API_CALL synErrorGetStatus(synErrorHandle, synStatus*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synErrorGetMessageLength(synErrorHandle, size_t*) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synErrorGetMessage(synErrorHandle, char*, size_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synDumpStateAndTerminate(const char*, uint64_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synUpdateMemoryConsumption(uint64_t, uint64_t) {
  return unsupported_syn(__func__);
}

synStatus SYN_API_CALL synTPCLibraryGetVersionSize(uint32_t*) { return unsupported_syn(__func__); }

synStatus SYN_API_CALL synTPCLibraryGetVersions(const char**, uint32_t*) {
  return unsupported_syn(__func__);
}
