// SPDX-License-Identifier: Apache-2.0
// Prepares buffers and calls.
#include "workload.h"

#include <algorithm>

namespace hccl_perf {
namespace {

struct BufferBytes {
  std::uint64_t send = 0;
  std::uint64_t receive = 0;
};

BufferBytes buffer_bytes(const Collective& collective, std::uint64_t bytes,
                         const std::vector<DataType>& types, int ranks) {
  BufferBytes needed;
  for (const DataType& type : types) {
    const Counts counts = collective.counts(bytes, type, ranks);
    needed.send = std::max(needed.send, counts.send * type.size);
    needed.receive = std::max(needed.receive, counts.receive * type.size);
  }
  needed.send += kGuardBytes;
  needed.receive += kGuardBytes;
  return needed;
}

}  // namespace

std::uint64_t device_bytes(const Collective& collective, std::uint64_t bytes,
                           const std::vector<DataType>& types, int ranks) {
  const BufferBytes needed = buffer_bytes(collective, bytes, types, ranks);
  return needed.send + needed.receive;
}

Workload::Workload(Session& session, const Collective& collective, std::uint64_t max_bytes,
                   const std::vector<DataType>& types)
    : session_(session),
      collective_(collective),
      send_(session, buffer_bytes(collective, max_bytes, types, session.ranks()).send),
      receive_(session, buffer_bytes(collective, max_bytes, types, session.ranks()).receive) {}

Cell Workload::cell(Placement placement, std::uint64_t bytes, const DataType& type,
                    const Reduction& reduction, int root) const {
  const Counts counts = collective_.counts(bytes, type, session_.ranks());
  Cell cell{placement,
            counts,
            {&collective_, type, reduction, root, session_.rank(), session_.ranks(),
             send_.address(), receive_.address(), counts.call}};
  if (placement == Placement::out_of_place) return cell;
  const std::uint64_t part = static_cast<std::uint64_t>(session_.rank()) * counts.call * type.size;
  switch (collective_.kind) {
    case CollectiveKind::all_gather:
      cell.call.send = receive_.address() + part;
      break;
    case CollectiveKind::reduce_scatter:
      cell.call.receive = send_.address() + part;
      break;
    default:
      cell.call.send = receive_.address();
      break;
  }
  return cell;
}

}  // namespace hccl_perf
