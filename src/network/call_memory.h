// SPDX-License-Identifier: Apache-2.0
// The buffers of a call, in device memory or in host memory.
#pragma once

#include "device/arena.h"
#include "network/flow.h"

#include <optional>

namespace hccl::network {

// Memory of this rank's device. For a piece without allocated pages (a hole), source() returns
// zeros and allocates nothing. destination() allocates the pages, so that a lack of memory causes
// an Error, not a signal.
class DeviceMemory final : public Memory {
 public:
  DeviceMemory(device::Arena& arena, device::DeviceAddress address)
      : view_(*arena.view()), begin_(arena.file_offset(address)) {}

  std::span<const std::byte> source(std::uint64_t offset, std::size_t most) override;
  std::span<std::byte> destination(std::uint64_t offset, std::size_t most) override;
  std::uint64_t address(std::uint64_t offset) const override { return begin_ + offset; }

 private:
  device::ArenaView& view_;
  const std::uint64_t begin_;
};

// A buffer of a call, in device memory or in host memory.
struct Buffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] bool is_within(const Buffer& other) const {
    return address >= other.address && address + bytes <= other.address + other.bytes;
  }
};

// Check that the process may access a buffer in host memory. An execution accesses the memory
// directly, so an invalid address would raise a signal. Throw as device::require_host_access()
// does: Error(hcclInvalidArgument), which names the buffer and the address, or
// Error(hcclSystemError).
void require_readable(const Buffer& send);
void require_writable(const Buffer& recv);

// Copies the first `bytes` bytes. Throws as Memory's functions do.
void copy_memory(Memory& from, Memory& to, std::uint64_t bytes);

// The memory at a device address or a host address.
class CallMemory {
 public:
  CallMemory(device::Arena& arena, std::uint64_t address);

  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;

  [[nodiscard]] Memory& get() const { return *memory_; }

 private:
  std::optional<DeviceMemory> device_;
  std::optional<PlainMemory> program_;
  Memory* memory_;
};

}  // namespace hccl::network
