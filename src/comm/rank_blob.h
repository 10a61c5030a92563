// SPDX-License-Identifier: Apache-2.0
// The properties of a rank that the other ranks of its node need when the communicator is created.
#pragma once

#include "base/config.h"
#include "bootstrap/rank_table.h"
#include "device/device.h"
#include "node/cpu_topology.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hccl::comm {

// The name that HCCL_ALGO or HCCL_TRANSPORT forces, padded with zeros. All zeros if the variable is
// not set.
using ForcedName = std::array<char, 32>;

// Bootstrap forwards these properties as opaque bytes (bootstrap::Contribution::blob).
struct RankBlob {
  static constexpr std::uint32_t kLayout = 4;
  std::uint32_t layout = kLayout;
  std::uint32_t module = 0;
  std::uint64_t memory_bytes = 0;  // size of the rank's memory file
  ForcedName algorithm{};
  ForcedName transport{};
  node::CpuAllowance cpus;

  [[nodiscard]] static RankBlob of(device::Device& device, const Config& settings);
};

[[nodiscard]] Bytes encode(const RankBlob& blob);
// Throws Error(hcclInvalidUsage) if the rank runs a different version of the library.
[[nodiscard]] RankBlob decode(const bootstrap::RankInfo& member);

// Returns how messages to users name the rank.
[[nodiscard]] std::string member_text(const bootstrap::RankInfo& member);

// Checks the settings and the memory files of the ranks on the node of `own_rank`, and the file of
// the control block, which the lowest of these ranks has created. Throws Error if the ranks run
// different versions or force different algorithms or transports, or if a file is not safe to map.
void inspect(const bootstrap::RankTable& table, int own_rank);

}  // namespace hccl::comm
