// SPDX-License-Identifier: Apache-2.0
// Error objects, which only the graph compiler makes.
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
