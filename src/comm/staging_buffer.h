// SPDX-License-Identifier: Apache-2.0
// The device memory through which host memory of a stream's calls is copied. Needed because peers
// map only device memory. Its pages are allocated when they are first written.
#pragma once

#include "device/arena.h"
#include "node/slicing.h"

namespace hccl::comm {

class StagingBuffer {
 public:
  // The arena must outlive the buffer. Throws Error(hcclOutOfMemory).
  explicit StagingBuffer(device::Arena& arena)
      : arena_(arena),
        address_(arena.allocate(node::kStagingBytes, "a staging buffer for host memory")) {}
  ~StagingBuffer() {
    arena_.release(address_, [] { return true; });
  }
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;

  [[nodiscard]] device::DeviceAddress address() const { return address_; }

 private:
  device::Arena& arena_;
  const device::DeviceAddress address_;
};

}  // namespace hccl::comm
