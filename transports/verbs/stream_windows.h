// SPDX-License-Identifier: Apache-2.0
// The windows through which the peer of a stream writes to this process: to the ring, to the slots
// for adverts, and to the destination that is advertised. On a device without windows, the peer
// uses the keys of the registrations instead.
#pragma once

#include "verbs/device.h"
#include "verbs/queue_pair.h"
#include "verbs/stream_memory.h"

#include <cstdint>

namespace hccl::verbs {

// Must be destroyed before the queue pair, because the kernel may wait for open windows when it
// destroys a queue pair, and before the registrations of the memory.
class StreamWindows {
 public:
  // `memory` must outlive this object. Throws Error(hcclSystemError).
  StreamWindows(RdmaDevice& device, const StreamMemory& memory);

  // Return the peer's keys for the ring and the slots.
  [[nodiscard]] std::uint32_t ring_key() const { return ring_key_; }
  [[nodiscard]] std::uint32_t adverts_key() const { return adverts_key_; }
  // Lets the peer of the queue pair, which must be connected, write to the ring and the slots. The
  // peer must not write before the queue pair has completed the request whose number is returned;
  // this is 0, and there is no request, if the device has no windows. Throws
  // Error(hcclSystemError).
  std::uint64_t open_to(QueuePair& pair);
  // Returns the window for destinations, or null if peers write there with the registration's key.
  [[nodiscard]] ibv_mw* destination() const { return destination_.get(); }

 private:
  const StreamMemory& memory_;
  // Null if the device has no windows. The last is also null if the device confines no peer to it.
  MemoryWindow ring_;
  MemoryWindow adverts_;
  MemoryWindow destination_;
  std::uint32_t ring_key_;
  std::uint32_t adverts_key_;
};

}  // namespace hccl::verbs
