// SPDX-License-Identifier: Apache-2.0
// The properties that an emulated device reports.
#pragma once

#include "base/config.h"

#include <synapse_api.h>

#include <cstdint>

namespace hccl::api {

struct DeviceFacts {
  synDeviceType type;
  const char* name;
  std::uint32_t pci_device;
  std::uint32_t sram_bytes;
  std::uint64_t tpc_mask;
};

[[nodiscard]] inline DeviceFacts device_facts(EmulatedDevice device) {
  if (device == EmulatedDevice::gaudi3)
    return {synDeviceGaudi3, "GAUDI3", 0x1060, 96u << 20, ~0ull};
  return {synDeviceGaudi2, "GAUDI2", 0x1020, 48u << 20, 0xff'ffff};
}

}  // namespace hccl::api
