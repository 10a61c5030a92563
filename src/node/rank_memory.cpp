// SPDX-License-Identifier: Apache-2.0
// as_source() returns the same block of zeros for every hole.
#include "node/rank_memory.h"

#include "device/copy.h"

#include <cstring>

namespace hccl::node {
namespace {

alignas(4096) const std::byte kZeros[kMaxSourceBytes]{};

}  // namespace

device::Content resolve_content(device::Arena& arena, std::uint64_t file_offset,
                                std::uint64_t bytes) {
  device::ArenaView& memory = *arena.view();
  if (memory.populated(file_offset, bytes)) return device::Content::data;
  const device::Content content = memory.content(file_offset, bytes);
  if (content == device::Content::data) memory.populate(file_offset, bytes, false);
  return content;
}

device::Content load(device::Arena& arena, device::DeviceAddress address, std::uint64_t bytes,
                     std::byte* destination) {
  if (!device::is_device_address(address)) {
    device::require_host_access(address, bytes, device::HostAccess::read, "send buffer");
    std::memcpy(destination, reinterpret_cast<const void*>(address), bytes);
    return device::Content::data;
  }
  const std::uint64_t file_offset = arena.locate(address).file_offset;
  const device::Content content = resolve_content(arena, file_offset, bytes);
  if (content == device::Content::data) {
    std::memcpy(destination, arena.view()->at(file_offset), bytes);
  } else {
    device::copy_to_host(arena, destination, address, bytes);
  }
  return content;
}

const std::byte* as_source(device::ArenaView& memory, std::uint64_t file_offset,
                           std::uint64_t bytes, device::Content content, bool mapped) {
  if (content == device::Content::hole) return kZeros;
  if (content == device::Content::mixed && memory.is_hole(file_offset, bytes)) return kZeros;
  if (!mapped) memory.populate(file_offset, bytes, false);
  return memory.at(file_offset);
}

std::byte* mapped_memory(const NodeSegment& node, int rank, std::uint64_t file_offset,
                         std::uint64_t bytes) {
  device::ArenaView& memory = node.memory(rank);
  if (!memory.populated(file_offset, bytes))
    memory.populate(file_offset, bytes, rank == node.rank());
  return memory.at(file_offset);
}

}  // namespace hccl::node
