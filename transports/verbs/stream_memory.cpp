// SPDX-License-Identifier: Apache-2.0
// One memory file for both rings: shared memory, so that a fork of the process changes nothing.
#include "verbs/stream_memory.h"

#include "base/shared_memory.h"

namespace hccl::verbs {

StreamMemory::StreamMemory(Device& device) {
  const FileDescriptor file = create_memory_file("hccl-verbs", 2 * kRingBytes);
  incoming_ = MirroredMapping(file, 0, kRingBytes);
  outgoing_ = MirroredMapping(file, kRingBytes, kRingBytes);
  registered_in_ = device.register_memory({incoming_.data(), kRingBytes}, true);
  registered_out_ = device.register_memory({outgoing_.data(), kRingBytes}, false);
}

}  // namespace hccl::verbs
