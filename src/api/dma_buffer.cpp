// SPDX-License-Identifier: Apache-2.0
// Exports device memory as a dma-buf: hcclLookupDMABuff.
#include "device/dma_buffer.h"

#include "api/guard.h"
#include "api/handles.h"

#include <hccl.h>

using namespace hccl;
using namespace hccl::api;

// Returns an int, because callers test for a negative value: error codes are negative, except the
// code for a null `fd`.
int hcclLookupDMABuff(uint64_t addr, uint64_t size, int* fd) {
  if (fd == nullptr) {
    return guard(__func__, [] {
      throw Error(hcclInvalidArgument, "hcclLookupDMABuff: fd is null; pass the address of an int");
    });
  }
  return -guard(probe(__func__), [&] {
    *fd = device::export_dma_buffer(device_with(addr, "addr")->arena(), addr, size).release();
  });
}
