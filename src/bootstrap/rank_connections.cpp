// SPDX-License-Identifier: Apache-2.0
// The owner may remove any rank while it handles a frame or the end of a connection. So ranks are
// looked up again after each call to the owner.
#include "bootstrap/rank_connections.h"

#include <utility>

namespace hccl::bootstrap {

void RankConnections::add(int rank, std::shared_ptr<FrameConnection> connection,
                          bool is_own_process) {
  const auto [place, added] = joined_.try_emplace(
      rank, std::make_unique<Joined>(*this, rank, std::move(connection), is_own_process));
  // Comes last: if the insertion throws, the connection must not keep a pointer to a destroyed
  // owner.
  place->second->connection->set_owner(place->second.get());
}

void RankConnections::start(int rank) {
  const auto found = joined_.find(rank);
  if (found == joined_.end()) return;
  const std::shared_ptr<FrameConnection> connection = found->second->connection;
  while (joined_.contains(rank)) {
    const std::optional<Frame> frame = connection->receive();
    if (!frame) break;
    owner_.on_rank_frame(rank, *frame);
  }
  if (connection->ended() && joined_.contains(rank))
    owner_.on_rank_connection_ended(rank, *connection);
}

void RankConnections::finish(int rank) {
  const auto found = joined_.find(rank);
  if (found == joined_.end()) return;
  const auto joined = std::move(found->second);
  joined_.erase(found);
  joined->connection->finish();
}

void RankConnections::finish_all() {
  for (const auto& [rank, joined] : std::exchange(joined_, {})) joined->connection->finish();
}

void RankConnections::send(int rank, FrameType type, const Bytes& payload) {
  const auto found = joined_.find(rank);
  if (found != joined_.end()) found->second->connection->send(type, payload);
}

void RankConnections::broadcast(FrameType type, const Bytes& payload, bool insist) {
  for (const bool own : {false, true}) {
    for (const auto& [rank, joined] : joined_) {
      if (joined->is_own_process != own) continue;
      joined->connection->send(type, payload);
      if (insist) joined->connection->insist();
    }
  }
}

void RankConnections::keep_alive() {
  for (const auto& [rank, joined] : joined_) joined->connection->keep_alive();
}

std::vector<int> RankConnections::ranks() const {
  std::vector<int> all;
  for (const auto& [rank, joined] : joined_) all.push_back(rank);
  return all;
}

}  // namespace hccl::bootstrap
