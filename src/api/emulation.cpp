// SPDX-License-Identifier: Apache-2.0
// The calls of hccl_emulation.h.
#include "api/guard.h"
#include "api/handles.h"

#include <hccl_emulation.h>

using namespace hccl;
using namespace hccl::api;

hcclResult_t hcclEmulationLaunch(void* stream_handle, void (*kernel)(void* arguments),
                                 void* arguments) {
  return guard([&] {
    if (kernel == nullptr)
      throw Error(hcclInvalidArgument, "kernel is null; pass the function to run");
    find_stream(stream_handle)->enqueue([kernel, arguments]() noexcept {
      kernel(arguments);
      return device::Outcome::success;
    });
  });
}

hcclResult_t hcclEmulationHostView(uint64_t device_address, uint64_t size, void** view) {
  return guard([&] {
    if (view == nullptr)
      throw Error(hcclInvalidArgument, "view is null; pass the address of a pointer");
    if (!device::is_device_address(device_address)) {
      throw Error(hcclInvalidArgument, text("device_address 0x", std::hex, device_address,
                                            " is no device address; pass one of synDeviceMalloc"));
    }
    device::Arena& arena = runtime().device(device::device_of(device_address))->arena();
    *view = arena.host_view(device_address, size);
  });
}
