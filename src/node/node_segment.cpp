// SPDX-License-Identifier: Apache-2.0
// Reports a rank's faults and departure to the other ranks of its node.
#include "node/node_segment.h"

#include "base/process.h"
#include "base/rank_text.h"
#include "base/text.h"

#include <atomic>
#include <utility>
#include <vector>

namespace hccl::node {
namespace {

// Returns the pid of each rank, or 0 if that pid is not valid in this process's pid namespace.
std::vector<int> known_pids(const std::vector<Peer>& peers) {
  std::vector<int> pids;
  pids.reserve(peers.size());
  for (const Peer& peer : peers) pids.push_back(peer.shares_pids ? peer.pid : 0);
  return pids;
}

}  // namespace

NodeSegment::NodeSegment(std::shared_ptr<SharedSegment> segment, std::vector<Peer> peers,
                         device::Arena& arena, int rank, const CoreCount& cores, DirectReads reads)
    : segment_(std::move(segment)),
      control_(segment_->data()),
      fault_(control_),
      peers_(std::move(peers)),
      arena_(arena),
      rank_(rank),
      size_(static_cast<int>(peers_.size())),
      cores_(cores),
      ladder_(cores.ladder()),
      cross_memory_(control_, rank, known_pids(peers_), reads) {}

void NodeSegment::fail(hcclResult_t code, const char* why) noexcept {
  if (has_failed_.exchange(true)) return;
  fault_.raise_with(code, [&] { return text(own_text(), ": ", why); });
}

void NodeSegment::rank_died(int rank) noexcept {
  Presence present = Presence::present;
  if (!record(rank).presence.compare_exchange_strong(present, Presence::dead,
                                                     std::memory_order_seq_cst))
    return;
  fault_.raise_with(hcclSystemError, [&] {
    return text(rank_text(rank),
                " has exited without hcclCommDestroy (crashed, killed or returned early); look at "
                "its output");
  });
}

void NodeSegment::depart() {
  own_record().presence.store(Presence::departed, std::memory_order_seq_cst);
  for (int rank = 0; rank < size_; ++rank) record(rank).mail.ring();
  const std::uint32_t end = control_.header().lane_end.load(std::memory_order_seq_cst);
  for (std::uint32_t index = 0; index < end; ++index) {
    LaneBlock& lane = control_.lane(index);
    if (lane.key.load(std::memory_order_seq_cst) != 0) lane.bell.ring();
  }
}

bool NodeSegment::is_stopped(int rank) const {
  return peer(rank).shares_pids && hccl::is_stopped(peer(rank).pid);
}

std::string NodeSegment::rank_text(int rank) const {
  return hccl::rank_text(peer(rank).number, peer(rank).pid, peer(rank).host);
}

}  // namespace hccl::node
