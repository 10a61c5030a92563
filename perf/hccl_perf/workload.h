// SPDX-License-Identifier: Apache-2.0
// The device buffers of a rank and the calls made on them. One pair of buffers serves every row.
#pragma once

#include "collective.h"
#include "session.h"

#include <cstdint>
#include <vector>

namespace hccl_perf {

enum class Placement { out_of_place, in_place };

// One half of a row of the table: a collective, a size, and where it reads and writes.
struct Cell {
  Placement placement = Placement::out_of_place;
  Counts counts{};
  Call call{};

  [[nodiscard]] std::uint64_t send_bytes() const { return counts.send * call.type.size; }
  [[nodiscard]] std::uint64_t receive_bytes() const { return counts.receive * call.type.size; }
};

// A guard of poisoned bytes follows each receive region; a collective must leave it alone.
inline constexpr std::uint64_t kGuardBytes = 256;

// Device memory one rank needs for rows of up to `bytes`.
[[nodiscard]] std::uint64_t device_bytes(const Collective& collective, std::uint64_t bytes,
                                         const std::vector<DataType>& types, int ranks);

class Workload {
 public:
  Workload(Session& session, const Collective& collective, std::uint64_t max_bytes,
           const std::vector<DataType>& types);

  // The cell of `bytes` for this rank. `root` is -1 for collectives without one.
  [[nodiscard]] Cell cell(Placement placement, std::uint64_t bytes, const DataType& type,
                          const Reduction& reduction, int root) const;

 private:
  Session& session_;
  const Collective& collective_;
  DeviceBuffer send_;
  DeviceBuffer receive_;
};

}  // namespace hccl_perf
