// SPDX-License-Identifier: Apache-2.0
// Includes the headers by the paths that C programs use if -I names the prefix's include folder.
#include <habanalabs/hccl.h>
#include <hccl/hccl.h>
#include <hccl/hccl_types.h>

hcclUniqueId zero_id(void) {
  hcclUniqueId id = {{0}, 0};
  return id;
}
