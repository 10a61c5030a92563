// SPDX-License-Identifier: Apache-2.0
// Device memory through which the host memory of a stream's calls goes, because peers map only
// device memory. Costs nothing until it is used.
#pragma once

#include "device/arena.h"
#include "node/slicing.h"

namespace hccl::comm {

class Stage {
 public:
  // The arena outlives it. Allocates all its pages, so that copies need not go through the kernel.
  // Throws Error(hcclOutOfMemory).
  explicit Stage(device::Arena& arena)
      : Stage(arena, arena.allocate(node::kExchangeStageBytes, "a stage for host buffers")) {
    arena.view()->populate(arena.file_offset(address_), node::kExchangeStageBytes, true);
  }
  ~Stage() {
    arena_.release(address_, [] { return true; });
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] device::DeviceAddress address() const { return address_; }
  [[nodiscard]] device::DeviceAddress for_send() const { return address_; }
  [[nodiscard]] device::DeviceAddress for_recv() const { return address_ + node::kStageBytes; }

 private:
  // Owns the allocation, also if populating it throws.
  Stage(device::Arena& arena, device::DeviceAddress address) : arena_(arena), address_(address) {}

  device::Arena& arena_;
  const device::DeviceAddress address_;
};

}  // namespace hccl::comm
