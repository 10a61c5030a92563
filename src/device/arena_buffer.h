// SPDX-License-Identifier: Apache-2.0
// A buffer in device memory that belongs to the library and that all ranks of a node map. Its pages
// are allocated when they are first written.
#pragma once

#include "device/arena.h"

#include <cstdint>

namespace hccl::device {

class ArenaBuffer {
 public:
  // The arena must outlive the buffer. `what` names the buffer in error texts. Throws
  // Error(hcclOutOfMemory).
  ArenaBuffer(Arena& arena, std::uint64_t bytes, const char* what)
      : arena_(arena), address_(arena.allocate(bytes, what)) {}
  ~ArenaBuffer() {
    if (!is_abandoned_) arena_.release(address_, [] { return true; });
  }
  ArenaBuffer(const ArenaBuffer&) = delete;
  ArenaBuffer& operator=(const ArenaBuffer&) = delete;

  [[nodiscard]] DeviceAddress address() const { return address_; }
  // Keeps the memory allocated until the arena is destroyed.
  void abandon() noexcept { is_abandoned_ = true; }

 private:
  Arena& arena_;
  const DeviceAddress address_;
  bool is_abandoned_ = false;
};

}  // namespace hccl::device
