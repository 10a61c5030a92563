// SPDX-License-Identifier: Apache-2.0
// Acquires devices and reports their properties.
#include "api/device_facts.h"
#include "api/guard.h"
#include "api/handles.h"

#include <synapse_api.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace hccl;
using namespace hccl::api;

namespace {

DeviceFacts facts() { return device_facts(config()->device_type); }

void acquire(synDeviceId* id, std::optional<std::uint32_t> module) {
  require_pointer(id, "pDeviceId");
  *id = runtime().acquire(module)->id();
  forgive_unavailable_module();
}

std::uint32_t count_of_type(synDeviceType type) {
  return type == facts().type || type == synDeviceTypeInvalid
             ? static_cast<std::uint32_t>(config()->device_count)
             : 0;
}

synStatus give_count(Callee callee, uint32_t* pCount, synDeviceType type) {
  return syn_guard(callee, [&] {
    runtime().require_initialized();
    require_pointer(pCount, "pCount");
    *pCount = count_of_type(type);
  });
}

struct MemoryUse {
  std::uint64_t base, total, free;
};

std::uint64_t attribute(synDeviceAttribute which, const MemoryUse& memory) {
  switch (which) {
    case DEVICE_ATTRIBUTE_SRAM_BASE_ADDRESS:
      return device::kAddressBase - (1ull << 32);
    case DEVICE_ATTRIBUTE_DRAM_BASE_ADDRESS:
      return memory.base;
    case DEVICE_ATTRIBUTE_SRAM_SIZE:
      return facts().sram_bytes;
    case DEVICE_ATTRIBUTE_DRAM_SIZE:
      return memory.total;
    case DEVICE_ATTRIBUTE_DRAM_FREE_SIZE:
      return memory.free;
    case DEVICE_ATTRIBUTE_TPC_ENABLED_MASK:
      return facts().tpc_mask;
    case DEVICE_ATTRIBUTE_DRAM_ENABLED:
      return 1;
    case DEVICE_ATTRIBUTE_DEVICE_TYPE:
      return static_cast<std::uint64_t>(facts().type);
    case DEVICE_ATTRIBUTE_CLK_RATE:
      return 1650;
    case DEVICE_ATTRIBUTE_MAX_RMW_SIZE:
    case DEVICE_ATTRIBUTE_STREAMS_TOTAL_MEM_SIZE:
      return 0;
    case DEVICE_ATTRIBUTE_ADDRESS_ALIGNMENT_SIZE:
      return 128;
    case DEVICE_ATTRIBUTE_MAX_DIMS:
      return SYN_GAUDI_MAX_TENSOR_DIM;
  }
  throw SynError(synInvalidArgument,
                 text("attribute ", static_cast<int>(which),
                      " is not a synDeviceAttribute; pass a DEVICE_ATTRIBUTE_ constant"));
}

void give_attributes(uint64_t* out, const synDeviceAttribute* which, unsigned count,
                     const MemoryUse& memory) {
  if (count == 0) return;
  require_pointer(out, "pRetVal");
  require_pointer(which, "deviceAttr");
  for (unsigned at = 0; at < count; ++at) out[at] = attribute(which[at], memory);
}

// Writes the attributes of a device that need not be acquired: those of the device with id 0, with
// all of its memory free.
synStatus give_common_attributes(Callee callee, uint64_t* out, const synDeviceAttribute* which,
                                 unsigned count) {
  return syn_guard(callee, [&] {
    runtime().require_initialized();
    const std::uint64_t total = device::Runtime::device_memory_bytes(*config());
    give_attributes(out, which, count, {device::kAddressBase, total, total});
  });
}

// Fills in the fields that synDeviceInfo and synDeviceInfoV2 have in common.
template <class Info>
void fill_info(device::Arena& arena, Info& info) {
  info = Info{};
  info.sramBaseAddress = device::kAddressBase - (1ull << 32);
  info.dramBaseAddress = arena.base();
  info.sramSize = facts().sram_bytes;
  info.dramSize = arena.capacity();
  info.tpcEnabledMask = facts().tpc_mask;
  info.dramEnabled = 1;
  info.deviceId = facts().pci_device;
  info.fd = static_cast<std::uint32_t>(-1);
  info.deviceType = facts().type;
}

}  // namespace

synStatus SYN_API_CALL synDeviceAcquireByModuleId(synDeviceId* pDeviceId,
                                                  const synModuleId moduleId) {
  return syn_guard(trying_modules(__func__), [&] { acquire(pDeviceId, moduleId); });
}

synStatus SYN_API_CALL synDeviceAcquire(synDeviceId* pDeviceId, const char* pciBus) {
  return syn_guard(__func__, [&] {
    if (pciBus == nullptr || *pciBus == '\0') return acquire(pDeviceId, std::nullopt);
    runtime().require_initialized();
    const auto count = static_cast<std::uint32_t>(config()->device_count);
    for (std::uint32_t module = 0; module < count; ++module) {
      if (device::pci_bus_id(module) == pciBus) return acquire(pDeviceId, module);
    }
    throw SynError(synNoDeviceFound,
                   text("no device at PCI address ", pciBus,
                        "; pass the address of a device, such as ", device::pci_bus_id(0)));
  });
}

synStatus SYN_API_CALL synDeviceAcquireByDeviceType(synDeviceId* pDeviceId,
                                                    const synDeviceType deviceType) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    if (count_of_type(deviceType) == 0) {
      throw SynError(synNoDeviceFound,
                     text("no device of type ", static_cast<int>(deviceType),
                          ": the emulated devices are ", facts().name, "; set HCCL_DEVICE_TYPE"));
    }
    acquire(pDeviceId, std::nullopt);
  });
}

synStatus SYN_API_CALL synDeviceRelease(synDeviceId deviceId) {
  return syn_guard(__func__, [&] { runtime().release(deviceId); });
}

synStatus SYN_API_CALL synDeviceSynchronize(const synDeviceId deviceId) {
  return syn_guard(__func__, [&] {
    runtime().require_initialized();
    return synchronize(*runtime().device(deviceId));
  });
}

synStatus SYN_API_CALL synDeviceGetCount(uint32_t* pCount) {
  return give_count(probe(__func__), pCount, synDeviceTypeInvalid);
}

synStatus SYN_API_CALL synDeviceGetCountByDeviceType(uint32_t* pCount,
                                                     const synDeviceType deviceType) {
  return give_count(probe(__func__), pCount, deviceType);
}

synStatus SYN_API_CALL synDeviceCount(uint32_t count[synDeviceTypeSize]) {
  return syn_guard(probe(__func__), [&] {
    runtime().require_initialized();
    require_pointer(count, "count");
    std::fill_n(count, static_cast<std::size_t>(synDeviceTypeSize), 0u);
    count[facts().type] = count_of_type(facts().type);
  });
}

synStatus SYN_API_CALL synDeviceGetModuleIDs(uint32_t* pDeviceModuleIds, uint32_t* size) {
  return syn_guard(probe(__func__), [&] {
    runtime().require_initialized();
    require_pointer(pDeviceModuleIds, "pDeviceModuleIds");
    require_pointer(size, "size");
    *size = std::min(*size, count_of_type(synDeviceTypeInvalid));
    for (std::uint32_t module = 0; module < *size; ++module) pDeviceModuleIds[module] = module;
  });
}

synStatus SYN_API_CALL synDeviceGetMemoryInfo(synDeviceId deviceId, uint64_t* free,
                                              uint64_t* total) {
  return syn_guard(probe(__func__), [&] {
    runtime().require_initialized();
    require_pointer(free, "free");
    require_pointer(total, "total");
    const auto device = runtime().device(deviceId);
    *free = device->arena().free_bytes();
    *total = device->arena().capacity();
  });
}

synStatus SYN_API_CALL synDeviceGetInfo(synDeviceId deviceId, synDeviceInfo* pDeviceInfo) {
  return syn_guard(probe(__func__), [&] {
    runtime().require_initialized();
    require_pointer(pDeviceInfo, "pDeviceInfo");
    const auto device = runtime().device(deviceId);
    fill_info(device->arena(), *pDeviceInfo);
  });
}

synStatus SYN_API_CALL synDeviceGetInfoV2(const synDeviceId deviceId,
                                          synDeviceInfoV2* pDeviceInfo) {
  return syn_guard(probe(__func__), [&] {
    runtime().require_initialized();
    require_pointer(pDeviceInfo, "pDeviceInfo");
    const auto device = runtime().device(deviceId);
    fill_info(device->arena(), *pDeviceInfo);
    pDeviceInfo->deviceIndex = static_cast<std::uint8_t>(device->module());
    pDeviceInfo->globalHbmBaseAddress = device->arena().base();
  });
}

synStatus SYN_API_CALL synDeviceGetAttribute(uint64_t* pRetVal,
                                             const synDeviceAttribute* deviceAttr,
                                             const unsigned querySize, const synDeviceId deviceId) {
  return syn_guard(probe(__func__), [&] {
    runtime().require_initialized();
    device::Arena& arena = runtime().device(deviceId)->arena();
    give_attributes(pRetVal, deviceAttr, querySize,
                    {arena.base(), arena.capacity(), arena.free_bytes()});
  });
}

synStatus SYN_API_CALL synDeviceGetAttributeByModuleId(uint64_t* pRetVal,
                                                       const synDeviceAttribute* deviceAttr,
                                                       const unsigned querySize,
                                                       const synModuleId) {
  return give_common_attributes(probe(__func__), pRetVal, deviceAttr, querySize);
}

synStatus SYN_API_CALL synDeviceTypeGetAttribute(uint64_t* pRetVal,
                                                 const synDeviceAttribute* deviceAttr,
                                                 const unsigned querySize, const synDeviceType) {
  return give_common_attributes(probe(__func__), pRetVal, deviceAttr, querySize);
}

synStatus SYN_API_CALL synDeviceGetName(char* pName, const int len, const synDeviceId deviceId) {
  return syn_guard(probe(__func__), [&] {
    runtime().require_initialized();
    static_cast<void>(runtime().device(deviceId));
    give_text(facts().name, pName, len, "pName");
  });
}

synStatus SYN_API_CALL synDeviceGetPCIBusId(char* pPciBusId, const int len,
                                            const synDeviceId deviceId) {
  return syn_guard(probe(__func__), [&] {
    runtime().require_initialized();
    give_text(device::pci_bus_id(runtime().device(deviceId)->module()), pPciBusId, len,
              "pPciBusId");
  });
}
