// SPDX-License-Identifier: Apache-2.0
// The root server's connections to the ranks that have joined.
#pragma once

#include "bootstrap/frame_connection.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace hccl::bootstrap {

// Thread safety: control thread only.
class RankConnections {
 public:
  class Owner {
   public:
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    virtual ~Owner() = default;
    virtual void on_rank_frame(int rank, const Frame& frame) = 0;
    // Called when the connection has ended; connection.why() and connection.forged() give the
    // reason.
    virtual void on_rank_connection_ended(int rank, FrameConnection& connection) = 0;
  };

  explicit RankConnections(Owner& owner) : owner_(owner) {}

  // `is_own_process`: whether the rank is part of this process.
  void add(int rank, std::shared_ptr<FrameConnection> connection, bool is_own_process);
  // Starts to read from the connection. Call it once, after add() and after the welcome has been
  // sent.
  void start(int rank);
  // Closes the connection when all queued frames have been sent, but after a second at the latest.
  void finish(int rank);
  void finish_all();

  void send(int rank, FrameType type, const Bytes& payload);
  // Sends the frame to all ranks. The ranks of this process come last, because they may end the
  // process when they receive the frame. `insist`: whether to call FrameConnection::insist() for
  // each rank.
  void broadcast(FrameType type, const Bytes& payload, bool insist = false);
  void keep_alive();

  [[nodiscard]] bool empty() const { return joined_.empty(); }
  [[nodiscard]] std::vector<int> ranks() const;
  // Returns the connection of a rank that has joined.
  [[nodiscard]] FrameConnection& of(int rank) const { return *joined_.at(rank)->connection; }

 private:
  struct Joined final : FrameConnection::Owner {
    Joined(RankConnections& all_in, int rank_in, std::shared_ptr<FrameConnection> connection_in,
           bool is_own_process_in)
        : all(all_in),
          rank(rank_in),
          connection(std::move(connection_in)),
          is_own_process(is_own_process_in) {}
    void on_activity(FrameConnection&) override { all.start(rank); }

    RankConnections& all;
    int rank;
    std::shared_ptr<FrameConnection> connection;
    bool is_own_process;
  };

  RankConnections::Owner& owner_;
  std::map<int, std::unique_ptr<Joined>> joined_;
};

}  // namespace hccl::bootstrap
