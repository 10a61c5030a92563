// SPDX-License-Identifier: Apache-2.0
// Device memory through which the host memory of a stream's calls goes, because peers map only
// device memory. Its pages are allocated when they are first used.
#pragma once

#include "device/arena.h"
#include "node/slicing.h"

namespace hccl::comm {

class Stage {
 public:
  // The arena outlives it. Throws Error(hcclOutOfMemory).
  explicit Stage(device::Arena& arena)
      : arena_(arena),
        address_(arena.allocate(node::kExchangeStageBytes, "a stage for host buffers")) {}
  ~Stage() {
    arena_.release(address_, [] { return true; });
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] device::DeviceAddress address() const { return address_; }
  [[nodiscard]] device::DeviceAddress for_send() const { return address_; }
  [[nodiscard]] device::DeviceAddress for_recv() const { return address_ + node::kStageBytes; }

 private:
  device::Arena& arena_;
  const device::DeviceAddress address_;
};

}  // namespace hccl::comm
