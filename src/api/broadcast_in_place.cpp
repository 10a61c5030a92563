// SPDX-License-Identifier: Apache-2.0
// hcclBcast, the older form of hcclBroadcast.
#include <hccl.h>

// Calls the exported hcclBroadcast rather than its implementation, so that a library that
// interposes hcclBroadcast, to trace or replace it, sees this call too.
hcclResult_t hcclBcast(void* buff, size_t count, hcclDataType_t datatype, int root, hcclComm_t comm,
                       void* stream_handle) {
  return hcclBroadcast(buff, buff, count, datatype, root, comm, stream_handle);
}
