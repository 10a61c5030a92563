// SPDX-License-Identifier: Apache-2.0
// Placement of shared memory on machines with several NUMA nodes.
#pragma once

#include "base/file_descriptor.h"

#include <cstdint>
#include <optional>
#include <string>

namespace hccl {

// Returns the NUMA node that contains all processors on which the threads of this process may run.
// Returns nothing if several nodes contain such processors, if only one node of the machine has
// processors, or if procfs or sysfs cannot be read. Tests pass a `root` other than sysfs.
[[nodiscard]] std::optional<int> own_numa_node(
    const std::string& root = "/sys/devices/system/node");

// Makes the kernel allocate the pages of a memory file on a NUMA node, whichever process writes
// them first. Uses other nodes if this node has no free memory. Does not move pages that exist.
// Returns false if the calling thread has a memory policy of its own (numactl), or if the system
// refuses. After a refusal, the node may be set for only part of the file.
bool prefer_numa_node(const FileDescriptor& file, std::uint64_t bytes, int node) noexcept;

}  // namespace hccl
