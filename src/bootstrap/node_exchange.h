// SPDX-License-Identifier: Apache-2.0
// Exchanges data between the ranks of a node, over abstract unix sockets: bytes, and descriptors of
// device memory, processes and the shared segment. The lowest rank of the node is the leader.
#pragma once

#include "bootstrap/frame_connection.h"
#include "bootstrap/join.h"
#include "bootstrap/messages.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/rank_table.h"
#include "bootstrap/rendezvous_client.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hccl::bootstrap {

class NodeExchange final : private PendingConnections::Owner {
 public:
  // `client`: reports failures of other ranks while the exchange waits. `listener`: this rank's
  // node socket. `limit`: the time within which a process that connects to the leader must send its
  // contribution.
  NodeExchange(RendezvousClient& client, const Table& table, int rank, FileDescriptor listener,
               Deadline::Duration limit = std::chrono::seconds(10));

  [[nodiscard]] RankTable run(Contribution mine, const MakeControl& make_control);

  // Processes a frame from the leader; called by run(), and directly by tests. Returns whether it
  // was the last frame. Throws Error if the frame is malformed or arrives too early.
  [[nodiscard]] bool take_from_leader(Frame& frame);

 private:
  void on_accepted(FileDescriptor socket, const SocketAddress& peer) override;
  void on_pending_frame(PendingConnections::Pending& pending, Frame& frame) override;
  bool on_no_room(int error) override;

  void lead(Contribution mine, const MakeControl& make_control);
  void follow(Contribution mine);
  void gather();
  [[nodiscard]] bool take_contribution(PendingConnections::Pending& pending, Frame& frame);
  void distribute();
  [[nodiscard]] std::shared_ptr<FrameConnection> connect_to_leader();
  void check_leader(const FileDescriptor& socket) const;
  void announce(const Contribution& mine);
  [[nodiscard]] RankInfo& member(int rank);
  [[nodiscard]] bool is_here(int rank) const;  // whether the rank is on this node
  [[nodiscard]] bool is_own_process(int rank) const;

  RendezvousClient& client_;
  const Table& table_;
  int rank_;
  int leader_ = 0;
  FileDescriptor listener_;
  Deadline::Duration limit_;
  std::optional<PendingConnections> pending_;  // on the leader, while it gathers contributions
  // On the leader, the connections to the other ranks of the node. On another rank, the connection
  // to the leader.
  std::vector<std::shared_ptr<FrameConnection>> connections_;
  std::vector<bool>
      present_;  // by rank: the rank's data has arrived, or the rank is on another node
  int ranks_here_ = 0;
  RankTable rank_table_;
};

}  // namespace hccl::bootstrap
