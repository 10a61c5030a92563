// SPDX-License-Identifier: Apache-2.0
// A communicator's part on one node, as one of its ranks sees it: the memory that the node's ranks
// share, the fault recorded there, and the ranks' identities.
#pragma once

#include "base/shared_memory.h"
#include "base/waiter.h"
#include "device/arena.h"
#include "node/control_block.h"
#include "node/cpu_topology.h"
#include "node/cross_memory.h"
#include "node/fault.h"
#include "node/lane.h"

#include <hccl_types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hccl::node {

struct Peer {
  int number = -1;  // rank in the whole communicator
  std::shared_ptr<device::ArenaView> memory;
  int pid = 0;
  bool shares_pids = true;  // whether `pid` is valid in this process's pid namespace
  std::string host;
};

// Every back end of a communicator with several ranks has a NodeSegment for the ranks of this node.
// In this folder, `rank` means the local rank, an index into `peers`. A back end that runs no calls
// through shared memory uses a NodeSegment without an Engine:
//
//   NodeSegment node(SharedSegment::map(control), std::move(peers), arena, rank, cores,
//                    true);
//   node.throw_if_failed();               // at the start of a call, and while it waits
//   Waiter waiter(node.ladder());         // how ranks of this node wait for each other
//   node.fail(error.code(), error.what());
//   node.depart();                        // before the segment is destroyed
//
// Thread safety: any thread may call any function.
class NodeSegment {
 public:
  // `peers`: the node's ranks, with this one at index `rank`. `arena`: this rank's own memory,
  // which must outlive the segment. `reads`: when ranks read each other's host memory.
  NodeSegment(std::shared_ptr<SharedSegment> segment, std::vector<Peer> peers, device::Arena& arena,
              int rank, const CoreCount& cores, DirectReads reads);
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] const CoreCount& cores() const { return cores_; }
  [[nodiscard]] WaitLadder ladder() const { return ladder_; }
  [[nodiscard]] device::Arena& arena() const { return arena_; }
  // Returns this process's mapping of the memory of `rank`.
  [[nodiscard]] device::ArenaView& memory(int rank) const { return *peer(rank).memory; }

  // Returns the object that reads the other ranks' host memory.
  [[nodiscard]] CrossMemory& cross_memory() { return cross_memory_; }

  [[nodiscard]] const ControlBlock& control() const { return control_; }
  [[nodiscard]] RankRecord& record(int rank) const { return control_.header().records[rank]; }
  [[nodiscard]] RankRecord& own_record() const { return record(rank_); }
  // Creates a lane. `ordinal`: the number of lanes that the communicator has created before this
  // one; the same on all ranks.
  [[nodiscard]] std::unique_ptr<Lane> make_lane(std::uint32_t ordinal) const {
    return std::make_unique<Lane>(control_, rank_, ordinal);
  }

  [[nodiscard]] Fault& fault() { return fault_; }
  [[nodiscard]] const Fault& fault() const { return fault_; }
  void throw_if_failed() const {
    if (fault_.raised()) fault_.throw_error();
  }
  // Raises a fault for all ranks of the node. The fault's text is `why`, prefixed with this rank's
  // name. If a fault is already recorded, keeps it, but still fails the operations in flight and
  // wakes the waiting ranks, because the rank that recorded the fault may have been stopped before
  // doing so. Only the first call on this rank has an effect.
  void fail(hcclResult_t code, const char* why) noexcept;

  // Raises a fault because the process of `rank` has exited, unless the rank has departed. Called
  // by the control thread.
  void rank_died(int rank) noexcept;
  // Ends this rank's membership. Calls of peers that wait for this rank then fail.
  void depart();
  [[nodiscard]] bool has_departed(int rank) const {
    return record(rank).presence.load(std::memory_order_seq_cst) == Presence::departed;
  }
  // Returns whether the process of `rank` is known to be stopped.
  [[nodiscard]] bool is_stopped(int rank) const;

  // Returns a rank's number in the whole communicator.
  [[nodiscard]] int number_of(int rank) const { return peer(rank).number; }
  // Return a rank's name for error and log texts: "rank 3 (pid 41, host a)".
  [[nodiscard]] std::string rank_text(int rank) const;
  [[nodiscard]] std::string own_text() const { return rank_text(rank_); }

 private:
  [[nodiscard]] const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  const std::shared_ptr<SharedSegment> segment_;
  const ControlBlock control_;
  Fault fault_;
  std::atomic<bool> has_failed_{false};  // whether fail() has been called
  const std::vector<Peer> peers_;
  device::Arena& arena_;
  const int rank_;
  const int size_;
  const CoreCount cores_;
  const WaitLadder ladder_;
  CrossMemory cross_memory_;
};

}  // namespace hccl::node
