// SPDX-License-Identifier: Apache-2.0
// The rules of a rendezvous, without sockets: who may join, when everybody is there, what a loss
// means.
#pragma once

#include "bootstrap/messages.h"

#include <optional>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// Driven by one thread.
class Rendezvous {
 public:
  enum class Phase { gathering, exchanging, complete, failed };

  // Lets the rank in, or says why not. A reason that concerns everybody (sizes that differ) also
  // fails the rendezvous. `address` is where the hello came from.
  [[nodiscard]] std::optional<Failure> admit(const Hello& hello, const std::string& address);

  // Moves from gathering to exchanging when the last rank is in, and from exchanging to complete
  // when the last is ready.
  void advance();
  void set_ready(int rank, Bytes announced);

  // The first failure stands; later ones are its consequences.
  void fail(const Failure& failure);
  void rank_exited(int rank);
  void rank_left(int rank, const Failure& own);
  void rank_gave_up(int rank, std::uint32_t seconds);

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] bool is_over() const {
    return phase_ == Phase::complete || phase_ == Phase::failed;
  }
  [[nodiscard]] const Failure& failure() const { return failure_; }
  [[nodiscard]] int size() const { return static_cast<int>(seats_.size()); }
  [[nodiscard]] bool has_joined(int rank) const;
  [[nodiscard]] const Table& table() const { return table_; }
  // Returns whether the ranks of the table are on several nodes.
  [[nodiscard]] bool several_nodes() const;
  // Returns whether every rank has announced how it is reached, as ranks that run schedules do.
  [[nodiscard]] bool all_announced() const;
  // Returns what the ranks announced when they were ready, by rank.
  [[nodiscard]] std::vector<Bytes> announced() const;
  // Returns which ranks are missing: "ranks 3,5 have not joined".
  [[nodiscard]] std::string waited_for() const;
  // "rank 3 (pid 41, host a)", "ranks 4-7 (host b)"
  [[nodiscard]] std::string describe_ranks(const std::vector<int>& ranks) const;
  // The node of a rank that has joined, as ProcessIdentity has it.
  [[nodiscard]] const std::string& box_of(int rank) const {
    return seats_[static_cast<std::size_t>(rank)].entry.process.box;
  }
  // Why a hello that comes too late is refused.
  [[nodiscard]] Failure refusal_when_over() const;

 private:
  struct Seat {
    bool taken = false;
    bool ready = false;
    std::string address;
    TableEntry entry;
    Bytes announced;
  };

  [[nodiscard]] std::string describe_rank(int rank) const;
  [[nodiscard]] Failure size_mismatch(const Hello& hello) const;
  [[nodiscard]] Failure second_claim(const Hello& hello, const std::string& address) const;
  [[nodiscard]] std::vector<int> ranks_where(bool Seat::*flag, bool value) const;

  Phase phase_ = Phase::gathering;
  std::vector<Seat> seats_;  // empty until the first rank says how many there are
  std::vector<int> arrivals_;
  Failure failure_;
  Table table_;
};

}  // namespace hccl::bootstrap
