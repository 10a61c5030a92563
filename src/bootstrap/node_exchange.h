// SPDX-License-Identifier: Apache-2.0
// The exchange between the ranks of each node: bytes, device memory, pidfds and the shared segment,
// as descriptors over abstract unix sockets. The lowest rank of the node leads.
#pragma once

#include "bootstrap/frame_channel.h"
#include "bootstrap/join.h"
#include "bootstrap/messages.h"
#include "bootstrap/rank_table.h"
#include "bootstrap/rendezvous_client.h"

namespace hccl::bootstrap {

// An abstract socket on which this rank can be reached by those of its user. Throws Error.
[[nodiscard]] FileDescriptor listen_on_node(const SocketName& name);

// A non-blocking connection to it; invalid with errno EAGAIN if too many wait there.
[[nodiscard]] FileDescriptor connect_to_node(const SocketName& name);

class NodeExchange {
 public:
  // `listener` is this rank's node socket; `client` tells of other ranks' failure while this waits.
  // A connection to the leader has `guest_limit` to contribute.
  NodeExchange(RendezvousClient& client, const Table& table, int rank, FileDescriptor listener,
               Deadline::Duration guest_limit = std::chrono::seconds(10));

  [[nodiscard]] RankTable run(Contribution mine, const MakeControl& make_control);

  // A part of run() on ranks that do not lead: takes a frame of the leader's, and returns true when
  // it was the last. Throws Error for one that is malformed or comes too early.
  [[nodiscard]] bool take_from_leader(Frame& frame);

 private:
  void lead(Contribution mine, const MakeControl& make_control);
  void follow(Contribution mine);
  void gather();
  [[nodiscard]] bool take_contribution(FrameChannel& channel, Frame& frame);
  void distribute();
  [[nodiscard]] FrameChannel connect_to_leader();
  void flush_all();
  void announce(const Contribution& mine);
  [[nodiscard]] RankInfo& member(int rank);
  [[nodiscard]] bool is_here(int rank) const;  // on this node
  [[nodiscard]] bool is_own_process(int rank) const;

  RendezvousClient& client_;
  const Table& table_;
  int rank_;
  int leader_ = 0;
  FileDescriptor listener_;
  Deadline::Duration guest_limit_;
  std::vector<FrameChannel> channels_;  // leader: one per contribution; member: to the leader
  std::vector<bool> present_;  // by rank: its entry is here; of other nodes there is none to come
  int ranks_here_ = 0;
  RankTable rank_table_;
};

}  // namespace hccl::bootstrap
