// SPDX-License-Identifier: Apache-2.0
// The device address space: a range of non-canonical addresses. A host pointer therefore cannot be
// mistaken for a device address, and host code that dereferences a device address crashes.
#pragma once

#include <cstdint>

namespace hccl::device {

using DeviceAddress = std::uint64_t;

inline constexpr DeviceAddress kAddressBase = 0x1001'0000'0000'0000;
inline constexpr std::uint64_t kAddressSpan = 1ull << 44;  // per device: 16 TiB
inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kHugePageBytes = 2ull << 20;

[[nodiscard]] constexpr DeviceAddress base_address(std::uint32_t device) {
  return kAddressBase + device * kAddressSpan;
}

// Returns the id of the device to which a device address belongs.
[[nodiscard]] constexpr std::uint32_t device_of(DeviceAddress address) {
  return static_cast<std::uint32_t>((address - kAddressBase) / kAddressSpan);
}

// Returns whether an address is a device address. Every other address is a host address.
[[nodiscard]] constexpr bool is_device_address(std::uint64_t address) {
  return address >= kAddressBase && address < kAddressBase + (std::uint64_t{1} << 52);
}

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace hccl::device
