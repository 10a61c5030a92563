// SPDX-License-Identifier: Apache-2.0
#include "verbs/stream_windows.h"

namespace hccl::verbs {

StreamWindows::StreamWindows(RdmaDevice& device, const StreamMemory& memory)
    : memory_(memory),
      ring_key_(memory.ring().registration.remote_key()),
      adverts_key_(memory.adverts().registration.remote_key()) {
  if (!device.has_windows()) return;
  ring_ = device.allocate_window();
  adverts_ = device.allocate_window();
  // With soft-RoCE, streams that open and close windows between writes hang if packets are lost.
  // The first two windows are opened before any write, and never closed by a request.
  if (device.confines_windows()) destination_ = device.allocate_window();
  ring_key_ = QueuePair::next_key(*ring_);
  adverts_key_ = QueuePair::next_key(*adverts_);
}

std::uint64_t StreamWindows::open_to(QueuePair& pair) {
  if (!ring_) return 0;
  pair.open(*ring_, memory_.ring().registration, memory_.ring().bytes);
  return pair.open(*adverts_, memory_.adverts().registration, memory_.adverts().bytes);
}

}  // namespace hccl::verbs
