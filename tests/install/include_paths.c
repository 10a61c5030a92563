// SPDX-License-Identifier: Apache-2.0
// The three ways in which C programs include the headers.
#include <habanalabs/hccl.h>
#include <hccl/hccl.h>
#include <hccl/hccl_types.h>

hcclUniqueId zero_id(void) {
  hcclUniqueId id = {{0}, 0};
  return id;
}
