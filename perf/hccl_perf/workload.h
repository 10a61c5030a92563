// SPDX-License-Identifier: Apache-2.0
// The device buffers of a rank and the calls on them. All rows use the same pair of buffers.
#pragma once

#include "collective.h"
#include "session.h"

#include <cstdint>
#include <vector>

namespace hccl_perf {

enum class Placement { out_of_place, in_place };

// One placement of a row of the table: the call, and the sizes of the regions that it reads and
// writes.
struct Cell {
  Placement placement = Placement::out_of_place;
  Counts counts{};
  Call call{};

  [[nodiscard]] std::uint64_t send_bytes() const { return counts.send * call.type.size; }
  [[nodiscard]] std::uint64_t receive_bytes() const { return counts.receive * call.type.size; }
};

// The size in bytes of the poisoned guard after a receive region. A collective must not change the
// guard. Only the receive region of an in-place reduce_scatter has no guard.
inline constexpr std::uint64_t kGuardBytes = 256;

// Returns the number of bytes of device memory that one rank needs for rows of up to `bytes`.
[[nodiscard]] std::uint64_t device_bytes(const Collective& collective, std::uint64_t bytes,
                                         const std::vector<DataType>& types, int ranks);

class Workload {
 public:
  Workload(Session& session, const Collective& collective, std::uint64_t max_bytes,
           const std::vector<DataType>& types);

  // Returns the cell of size `bytes` for this rank. `root` is -1 for collectives without a root.
  [[nodiscard]] Cell cell(Placement placement, std::uint64_t bytes, const DataType& type,
                          const Reduction& reduction, int root) const;

 private:
  Session& session_;
  const Collective& collective_;
  DeviceBuffer send_;
  DeviceBuffer receive_;
};

}  // namespace hccl_perf
