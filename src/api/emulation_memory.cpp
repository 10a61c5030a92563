// SPDX-License-Identifier: Apache-2.0
// The functions of hccl_emulation.h for memory that the program's own code accesses.
#include "api/guard.h"
#include "api/handles.h"
#include "api/host_ranges.h"
#include "base/scope_exit.h"
#include "device/host_memory.h"

#include <limits>
#include <memory>
#include <optional>

#include <hccl_emulation.h>

using namespace hccl;
using namespace hccl::api;

namespace {

// The addresses that hcclEmulationMemAlloc() has returned and hcclEmulationMemFree() has not freed.
HostRanges& allocated_memory() {
  static auto* ranges = new HostRanges;  // outlives static destructors
  return *ranges;
}

}  // namespace

hcclResult_t hcclEmulationHostView(uint64_t device_address, uint64_t size, void** view) {
  return guard(__func__, [&] {
    if (view == nullptr)
      throw Error(hcclInvalidArgument, "view is null; pass the address of a pointer");
    *view = device_with(device_address, "device_address")->arena().host_view(device_address, size);
  });
}

hcclResult_t hcclEmulationDeviceAddress(const void* view, uint64_t size, uint64_t* device_address) {
  return guard(__func__, [&] {
    if (device_address == nullptr)
      throw Error(hcclInvalidArgument, "device_address is null; pass the address of a variable");
    for (const auto& device : runtime().devices()) {
      device::Arena& arena = device->arena();
      const auto address = arena.find_seen_at(to_number(view));
      if (!address) continue;
      static_cast<void>(arena.resolve(*address, size, "device_address"));
      *device_address = *address;
      return;
    }
    throw Error(hcclInvalidArgument,
                text("view ", view,
                     " is not in a host view of device memory; pass an address that "
                     "hcclEmulationHostView returned"));
  });
}

hcclResult_t hcclEmulationMemAlloc(void** memory, uint64_t size) {
  return guard(__func__, [&] {
    if (memory == nullptr)
      throw Error(hcclInvalidArgument, "memory is null; pass the address of a pointer");
    const std::shared_ptr<device::Device> device = runtime().current();
    if (device == nullptr) {
      throw Error(hcclInvalidUsage,
                  "this process holds no device; call synDeviceAcquireByModuleId first");
    }
    const device::DeviceAddress address = device->arena().allocate(size, "hcclEmulationMemAlloc");
    ScopeExit on_failure([&] { device->free_memory(address); });
    void* const view = device->arena().host_view(address, size);
    allocated_memory().add(view);
    on_failure.dismiss();
    *memory = view;
  });
}

hcclResult_t hcclEmulationMemFree(void* memory) {
  return guard(__func__, [&] {
    if (memory == nullptr) return;
    if (allocated_memory().remove(memory)) {
      for (const auto& device : runtime().devices()) {
        const auto address = device->arena().find_seen_at(to_number(memory));
        if (address) return device->free_memory(*address);
      }
      return;  // released with its device
    }
    throw Error(hcclInvalidArgument, text("memory ", memory,
                                          " is not from hcclEmulationMemAlloc, or has been freed; "
                                          "pass each address from that function only once"));
  });
}

hcclResult_t hcclEmulationKeepAtFork(uint64_t device_address, uint64_t size, int keep) {
  return guard(__func__, [&] {
    device_with(device_address, "device_address")
        ->arena()
        .keep_at_fork(device_address, size, keep != 0);
  });
}

hcclResult_t hcclEmulationCheckMemory(const void* memory, uint64_t size, int writable) {
  return guard(__func__, [&] {
    const std::uint64_t address = to_number(memory);
    if (size == 0) return;
    if (size > std::numeric_limits<std::uint64_t>::max() - address || address == 0) {
      throw Error(hcclInvalidArgument,
                  text("memory ", memory, " + ", size,
                       " bytes is not in the address space; pass memory of this process"));
    }
    device::check_host_access(address, size,
                              writable != 0 ? device::HostAccess::write : device::HostAccess::read,
                              "memory");
  });
}

hcclResult_t hcclEmulationTrim(uint64_t device_address, uint64_t size) {
  return guard(__func__, [&] {
    device_with(device_address, "device_address")->arena().trim(device_address, size);
  });
}
