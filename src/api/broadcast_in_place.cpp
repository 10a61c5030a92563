// SPDX-License-Identifier: Apache-2.0
// hcclBcast, the older form of hcclBroadcast.
#include <hccl.h>

// Calls the exported hcclBroadcast, not its implementation: a tool that interposes hcclBroadcast to
// trace or replace it must see this call too.
hcclResult_t hcclBcast(void* buff, size_t count, hcclDataType_t datatype, int root, hcclComm_t comm,
                       void* stream_handle) {
  return hcclBroadcast(buff, buff, count, datatype, root, comm, stream_handle);
}
