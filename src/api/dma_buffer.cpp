// SPDX-License-Identifier: Apache-2.0
// Exports device memory as a DMA buffer: hcclLookupDMABuff.
#include "device/dma_buffer.h"

#include "api/guard.h"
#include "api/handles.h"

#include <hccl.h>

using namespace hccl;
using namespace hccl::api;

namespace {

// Returns the device to which the address belongs. Throws Error(hcclInvalidArgument) if it is not a
// device address.
std::shared_ptr<device::Device> device_of(std::uint64_t address) {
  if (!device::is_device_address(address))
    throw Error(hcclInvalidArgument,
                text("addr 0x", std::hex, address, " is not a device address"));
  return runtime().device(device::device_of(address));
}

}  // namespace

// Returns int and not a result code. Callers test for a negative value, so failures are negative,
// except that of a null `fd`, which is positive.
int hcclLookupDMABuff(uint64_t addr, uint64_t size, int* fd) {
  if (fd == nullptr) {
    return guard(__func__, [] {
      throw Error(hcclInvalidArgument, "hcclLookupDMABuff: fd is null; pass the address of an int");
    });
  }
  return -guard(probe(__func__), [&] {
    *fd = device::export_dma_buffer(device_of(addr)->arena(), addr, size).release();
  });
}
