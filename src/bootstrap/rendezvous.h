// SPDX-License-Identifier: Apache-2.0
// The rules of a rendezvous, without sockets: which ranks may join, when all have joined, and which
// failure follows from the loss of a rank.
#pragma once

#include "bootstrap/messages.h"

#include <optional>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// Thread safety: one thread.
class Rendezvous {
 public:
  enum class Phase { gathering, exchanging, complete, failed };

  // Admits the rank, or returns the reason for a refusal. If the ranks pass different sizes, also
  // fails the rendezvous, because that concerns all ranks. `address`: the address from which the
  // hello came.
  [[nodiscard]] std::optional<Failure> admit(const Hello& hello, const std::string& address);

  // Moves from `gathering` to `exchanging` when the last rank has joined, and from `exchanging` to
  // `complete` when the last rank is ready.
  void advance();
  void set_ready(int rank, Bytes announced);

  // These functions fail the rendezvous, unless it is over: only the first failure is kept, because
  // later failures are its consequences.
  void fail(const Failure& failure);
  void rank_exited(int rank);
  void rank_left(int rank, const Failure& own);
  void rank_gave_up(int rank, std::uint32_t seconds);

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] bool is_over() const {
    return phase_ == Phase::complete || phase_ == Phase::failed;
  }
  [[nodiscard]] const Failure& failure() const { return failure_; }
  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] bool has_joined(int rank) const;
  [[nodiscard]] const Table& table() const { return table_; }
  // Returns whether the ranks of the table are on several nodes.
  [[nodiscard]] bool several_nodes() const;
  // Returns whether every rank has sent an announcement. On a single node, ranks send one only if
  // they use the network back end, that is, if HCCL_ALGO or HCCL_TRANSPORT is set.
  [[nodiscard]] bool all_announced() const;
  // Returns the announcements that the ranks made when they were ready, in rank order.
  [[nodiscard]] std::vector<Bytes> announced() const;
  // Returns a clause that names the ranks for which the others wait, such as "ranks 3,5 have not
  // joined".
  [[nodiscard]] std::string waited_for() const;
  // Returns a description of the ranks: "rank 3 (pid 41, host a)" or "ranks 4-7 (host b)".
  [[nodiscard]] std::string describe_ranks(const std::vector<int>& ranks) const;
  // Returns the node of a rank that has joined: ProcessIdentity::node.
  [[nodiscard]] const std::string& node_of(int rank) const {
    return members_[static_cast<std::size_t>(rank)].entry.process.node;
  }
  // Returns the error for a rank whose hello arrives after the rendezvous has ended.
  [[nodiscard]] Failure refusal_when_over() const;

 private:
  struct Member {
    bool joined = false;
    bool ready = false;
    std::string address;
    TableEntry entry;
    Bytes announced;
  };

  [[nodiscard]] std::string describe_rank(int rank) const;
  [[nodiscard]] Failure size_mismatch(const Hello& hello) const;
  [[nodiscard]] Failure second_claim(const Hello& hello, const std::string& address) const;
  [[nodiscard]] std::vector<int> ranks_where(bool Member::*flag, bool value) const;

  Phase phase_ = Phase::gathering;
  std::vector<Member> members_;  // by rank; empty until the first hello, which gives the size
  std::vector<int> arrivals_;
  Failure failure_;
  Table table_;
};

}  // namespace hccl::bootstrap
