// SPDX-License-Identifier: Apache-2.0
// Creates a communicator's control block.
#include "node/control_block.h"

#include "base/shared_memory.h"

#include <new>

namespace hccl::node {

FileDescriptor ControlBlock::create(int ranks, std::uint32_t first_number) {
  FileDescriptor file = create_memory_file("hccl-communicator", bytes(ranks));
  const auto segment = SharedSegment::map(file);
  auto* header = new (segment->data()) ControlHeader;
  header->ranks = static_cast<std::uint32_t>(ranks);
  header->first_number = first_number;
  return file;
}

}  // namespace hccl::node
