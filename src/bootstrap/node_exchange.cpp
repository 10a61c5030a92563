// SPDX-License-Identifier: Apache-2.0
// Ranks send their contributions to the leader. The leader sends all contributions, and then the
// shared segment, to every other rank of the node. The root server runs the final barrier, because
// it detects the exit of ranks.
#include "bootstrap/node_exchange.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/peer_process.h"
#include "base/retry.h"
#include "base/secret.h"
#include "base/text.h"
#include "bootstrap/node_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <memory>

#include <sys/socket.h>
#include <unistd.h>

namespace hccl::bootstrap {
namespace {

constexpr std::size_t kMostUnread = 1024;  // descriptors
constexpr std::size_t kMostOfOthers = 64;  // pending connections beyond those of the ranks
// There is no limit, because the leader queues all entries for all ranks at the same time.
constexpr std::size_t kAnyUnsent = std::numeric_limits<std::size_t>::max();

// Returns a pidfd of this process. A pidfd is valid in every pid namespace; a pid is not.
FileDescriptor own_process() {
  FileDescriptor process = open_process(getpid());
  if (!process.valid()) {
    throw Error(hcclSystemError,
                text("cannot watch this process (pidfd_open): ", system_error_text(errno), "; ",
                     advice_on(errno, "use Linux 5.3 or later")));
  }
  return process;
}

}  // namespace

NodeExchange::NodeExchange(RendezvousClient& client, const Table& table, int rank,
                           FileDescriptor listener, Deadline::Duration limit)
    : client_(client),
      table_(table),
      rank_(rank),
      listener_(std::move(listener)),
      limit_(limit),
      present_(table.ranks.size(), false) {
  for (const TableEntry& entry : table.ranks) {
    RankInfo added;
    added.rank = static_cast<int>(rank_table_.members.size());
    added.pid = entry.process.pid;
    added.shares_pids =
        entry.process.shares_pids_with(table.ranks[static_cast<std::size_t>(rank)].process);
    added.host = entry.process.host;
    added.node = entry.process.node;
    rank_table_.members.push_back(std::move(added));
  }
  for (int other = 0; other < static_cast<int>(present_.size()); ++other) {
    present_[static_cast<std::size_t>(other)] = !is_here(other);
    if (is_here(other) && ranks_here_++ == 0) leader_ = other;
  }
}

RankTable NodeExchange::run(Contribution mine, const MakeControl& make_control) {
  const bool one_node = ranks_here_ == static_cast<int>(present_.size());
  const bool keeps_link = !one_node || mine.announces_always;
  announce(mine);
  const auto inspect = std::move(mine.inspect);
  if (rank_ == leader_) {
    lead(std::move(mine), make_control);
  } else {
    follow(std::move(mine));
  }
  if (inspect) inspect(rank_table_);
  for (RankInfo& other : rank_table_.members) {
    // A rank does not watch its own process.
    if (is_own_process(other.rank)) other.process.reset();
  }
  std::vector<Bytes> announced = client_.finish(member(rank_).announced);
  for (RankInfo& other : rank_table_.members)
    other.announced = std::move(announced[static_cast<std::size_t>(other.rank)]);
  if (keeps_link) rank_table_.link = client_.release();
  return std::move(rank_table_);
}

void NodeExchange::announce(const Contribution& mine) {
  const bool one_node = ranks_here_ == static_cast<int>(present_.size());
  if (!mine.announce || (one_node && !mine.announces_always)) return;
  member(rank_).announced =
      mine.announce({std::make_shared<const SecretBytes>(table_.secret), table_.is_private});
  if (member(rank_).announced.size() > kMostAnnounced)
    throw Error(hcclInternalError, text("rank ", rank_, " announces more than ", kMostAnnounced,
                                        " bytes of data; report this as a bug in hccl"));
}

void NodeExchange::lead(Contribution mine, const MakeControl& make_control) {
  RankInfo& own = member(rank_);
  own.blob = std::move(mine.blob);
  own.memory = std::move(mine.memory);
  own.process = own_process();
  present_[static_cast<std::size_t>(rank_)] = true;
  rank_table_.control = make_control(ranks_here_);
  gather();
  distribute();
}

void NodeExchange::gather() {
  PendingConnections::Owner& self = *this;
  pending_.emplace(
      client_.loop(), std::move(listener_),
      PendingConnections::Limits{
          .connections = static_cast<std::size_t>(ranks_here_) + kMostOfOthers,
          .time = limit_,
          .frames = {.payload = kMostBlob + 64, .descriptors = 2, .unsent = kAnyUnsent}},
      self);
  pending_->start();
  while (!std::ranges::all_of(present_, [](bool here) { return here; })) client_.wait();
  pending_.reset();
}

// Accepts connections only from processes that the kernel attributes to this user.
void NodeExchange::on_accepted(FileDescriptor socket, const SocketAddress&) {
  if (peer_user(socket.get()) == geteuid()) return pending_->add({std::move(socket)});
  pending_->rejections().report([&] { return peer_text(socket.get()); }, "belongs to another user");
}

void NodeExchange::on_pending_frame(PendingConnections::Pending& pending, Frame& frame) {
  if (!take_contribution(pending, frame))
    pending_->reject(pending, "sent a frame that no rank of this communicator sends");
}

bool NodeExchange::on_no_room(int error) {
  if (pending_->make_room()) return true;
  throw Error(hcclSystemError, text("cannot accept a rank's connection: ", system_error_text(error),
                                    "; ", advice_on(error, "start all ranks again")));
}

// Stores a rank's contribution. Returns false for a frame that no rank of this communicator would
// send.
bool NodeExchange::take_contribution(PendingConnections::Pending& pending, Frame& frame) {
  auto message = frame.type == FrameType::contribution ? parse<ContributionMessage>(frame.payload)
                                                       : std::nullopt;
  if (!message || !equal_in_constant_time(message->secret, table_.secret) ||
      message->rank >= static_cast<int>(present_.size()) ||
      present_[static_cast<std::size_t>(message->rank)] ||
      frame.descriptors.size() != (message->has_memory ? 2U : 1U)) {
    return false;
  }
  // Prefer the pidfd that the kernel provides for the peer. Old kernels provide none for a rank in
  // another pid namespace.
  FileDescriptor process = peer_process(pending.connection->fd());
  if (!process.valid()) process = std::move(frame.descriptors.back());
  RankInfo& from = member(message->rank);
  from.blob = std::move(message->blob);
  if (message->has_memory) from.memory = std::move(frame.descriptors.front());
  from.process = std::move(process);
  present_[static_cast<std::size_t>(message->rank)] = true;
  connections_.push_back(pending_->take(pending));
  return true;
}

void NodeExchange::distribute() {
  for (const RankInfo& from : rank_table_.members) {
    if (!is_here(from.rank)) continue;
    const EntryMessage message{from.rank, from.memory.valid(), true, from.blob};
    const Bytes bytes = serialize(message);
    std::vector<int> descriptors{from.process.get()};
    if (from.memory.valid()) descriptors.insert(descriptors.begin(), from.memory.get());
    for (const auto& connection : connections_)
      connection->send(FrameType::entry, bytes, descriptors);
  }
  std::vector<int> control;
  if (rank_table_.control.valid()) control.push_back(rank_table_.control.get());
  for (const auto& connection : connections_)
    connection->send(FrameType::control_block, {}, control);
  const auto has_unsent = [](const auto& connection) { return connection->has_unsent(); };
  while (std::ranges::any_of(connections_, has_unsent)) client_.wait();
}

// Throws Error(hcclSocketError) if the kernel attributes the socket to another process than the
// leader's. In another pid namespace, only the user can be checked.
void NodeExchange::check_leader(const FileDescriptor& socket) const {
  const ProcessIdentity& leader = table_.ranks[static_cast<std::size_t>(leader_)].process;
  const ProcessIdentity& own = table_.ranks[static_cast<std::size_t>(rank_)].process;
  const auto peer = peer_credentials(socket.get());
  if (!peer || peer->uid != geteuid()) {
    throw Error(hcclSocketError, text("the unix socket of ", rank_text(leader_, leader),
                                      " belongs to another user; run all ranks as one user"));
  }
  if (leader.shares_pids_with(own) && peer->pid != leader.pid) {
    const std::string who = peer->pid > 0 ? text("process ", peer->pid) : "process in a container";
    throw Error(hcclSocketError, text("the unix socket of ", rank_text(leader_, leader),
                                      " belongs to another ", who, "; end that process"));
  }
}

std::shared_ptr<FrameConnection> NodeExchange::connect_to_leader() {
  const TableEntry& leader = table_.ranks[static_cast<std::size_t>(leader_)];
  FileDescriptor socket = connect_to_node(leader.node_socket);
  while (!socket.valid()) {
    if (errno != EAGAIN) {
      client_.wait_for_verdict(
          {hcclSystemError, text("rank ", rank_, " cannot reach the unix socket of ",
                                 rank_text(leader_, leader.process), ": ", system_error_text(errno),
                                 "; run all ranks of a node in one network namespace")});
    }
    client_.wait(kShortagePause);
    socket = connect_to_node(leader.node_socket);
  }
  check_leader(socket);
  return std::make_shared<FrameConnection>(
      client_.loop(), FrameConnection::Detached{std::move(socket)},
      FrameConnection::Limits{
          .payload = kLargePayload, .descriptors = kMostUnread, .unsent = kAnyUnsent});
}

void NodeExchange::follow(Contribution mine) {
  connections_.push_back(connect_to_leader());
  FrameConnection& leader = *connections_.front();
  const ContributionMessage message{table_.secret, rank_, mine.memory.valid(),
                                    std::move(mine.blob)};
  const FileDescriptor process = own_process();
  std::vector<int> descriptors;
  if (mine.memory.valid()) descriptors.push_back(mine.memory.get());
  descriptors.push_back(process.get());
  leader.send(FrameType::contribution, serialize(message), descriptors);
  while (true) {
    if (std::optional<Frame> frame = leader.receive()) {
      if (take_from_leader(*frame)) return;
      continue;
    }
    if (leader.ended()) {
      client_.wait_for_verdict(
          {hcclSystemError,
           text(rank_text(leader_, table_.ranks[static_cast<std::size_t>(leader_)].process), ' ',
                leader.why(), " while rank ", rank_,
                " waited for the other ranks' memory descriptors; see the output of rank ", leader_,
                ", then start all ranks again")});
    }
    client_.wait();
  }
}

// Stores an entry or the shared segment. Returns true for the shared segment, which comes last.
bool NodeExchange::take_from_leader(Frame& frame) {
  const auto refuse = [&] {
    throw Error(hcclInternalError,
                text("rank ", leader_, " sent rank ", rank_, " a malformed ",
                     "list of ranks; install the same version of hccl on all ranks"));
  };
  if (frame.type == FrameType::control_block) {
    const bool whole = std::ranges::all_of(present_, [](bool here) { return here; });
    if (!whole || frame.descriptors.size() > 1) refuse();
    if (!frame.descriptors.empty()) rank_table_.control = std::move(frame.descriptors.front());
    return true;
  }
  auto entry = frame.type == FrameType::entry ? parse<EntryMessage>(frame.payload) : std::nullopt;
  if (!entry || entry->rank >= static_cast<int>(present_.size())) refuse();
  const std::size_t expected = (entry->has_memory ? 1U : 0U) + (entry->has_process ? 1U : 0U);
  if (frame.descriptors.size() != expected || present_[static_cast<std::size_t>(entry->rank)]) {
    refuse();
  }
  RankInfo& to = member(entry->rank);
  to.blob = std::move(entry->blob);
  if (entry->has_memory) to.memory = std::move(frame.descriptors.front());
  if (entry->has_process) to.process = std::move(frame.descriptors.back());
  present_[static_cast<std::size_t>(entry->rank)] = true;
  return false;
}

RankInfo& NodeExchange::member(int rank) {
  return rank_table_.members[static_cast<std::size_t>(rank)];
}

bool NodeExchange::is_here(int rank) const {
  return rank_table_.members[static_cast<std::size_t>(rank)].node ==
         rank_table_.members[static_cast<std::size_t>(rank_)].node;
}

bool NodeExchange::is_own_process(int rank) const {
  const auto& ranks = table_.ranks;
  return ranks[static_cast<std::size_t>(rank)].process.same_process(
      ranks[static_cast<std::size_t>(rank_)].process);
}

}  // namespace hccl::bootstrap
