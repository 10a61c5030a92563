// SPDX-License-Identifier: Apache-2.0
#include "network/call_memory.h"

#include "device/host_memory.h"

#include <algorithm>
#include <cstring>

namespace hccl::network {
namespace {

constexpr std::size_t kZerosSize = std::size_t{64} << 10;

alignas(4096) const std::byte kZeros[kZerosSize]{};

}  // namespace

std::span<const std::byte> DeviceMemory::source(std::uint64_t offset, std::size_t most) {
  const std::uint64_t at = begin_ + offset;
  if (!view_.populated(at, most)) {
    most = std::min(most, kZerosSize);
    // If the piece also contains data, populate() allocates pages for its holes.
    if (view_.is_hole(at, most)) return {kZeros, most};
    view_.populate(at, most, false);
  }
  return {view_.at(at), most};
}

std::span<std::byte> DeviceMemory::destination(std::uint64_t offset, std::size_t most) {
  const std::uint64_t at = begin_ + offset;
  if (!view_.populated(at, most)) view_.populate(at, most, true);
  return {view_.at(at), most};
}

void require_readable(const Buffer& send) {
  if (!device::is_device_address(send.address))
    device::require_host_access(send.address, send.bytes, device::HostAccess::read, "send buffer");
}

void require_writable(const Buffer& recv) {
  if (!device::is_device_address(recv.address)) {
    device::require_host_access(recv.address, recv.bytes, device::HostAccess::write,
                                "receive buffer");
  }
}

CallMemory::CallMemory(device::Arena& arena, std::uint64_t address) {
  if (device::is_device_address(address)) {
    memory_ = &device_.emplace(arena, address);
  } else {
    memory_ = &program_.emplace(reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)));
  }
}

void copy_memory(Memory& from, Memory& to, std::uint64_t bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  for (std::uint64_t at = 0; at < bytes;) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - at, kMost));
    const std::span<std::byte> into = to.destination(at, most);
    // Not std::ranges::copy(), which moves only 16 bytes at a time.
    const std::span<const std::byte> read = from.source(at, into.size());
    std::memcpy(into.data(), read.data(), read.size());
    at += read.size();
  }
}

}  // namespace hccl::network
