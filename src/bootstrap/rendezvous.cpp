// SPDX-License-Identifier: Apache-2.0
// The error texts of this file may appear on any rank, so they name the ranks concerned.
#include "bootstrap/rendezvous.h"

#include "base/rank_text.h"
#include "base/secret.h"
#include "base/text.h"

#include <algorithm>

namespace hccl::bootstrap {

std::optional<Failure> Rendezvous::admit(const Hello& hello, const std::string& address) {
  if (is_over()) return refusal_when_over();
  if (hello.rank >= hello.size) {
    return Failure{hcclInvalidArgument, text("rank ", hello.rank, " is not below the size ",
                                             hello.size, "; pass a rank from 0 to size - 1")};
  }
  if (members_.empty()) members_.resize(static_cast<std::size_t>(hello.size));
  if (hello.size != size()) {
    fail(size_mismatch(hello));
    return failure_;
  }
  Member& member = members_[static_cast<std::size_t>(hello.rank)];
  if (member.joined) return second_claim(hello, address);
  member.joined = true;
  member.address = address;
  member.entry = {hello.process, hello.node_socket};
  arrivals_.push_back(hello.rank);
  return std::nullopt;
}

void Rendezvous::advance() {
  const auto all = [&](bool Member::*flag) {
    return !members_.empty() &&
           std::ranges::all_of(members_, [&](const Member& s) { return s.*flag; });
  };
  if (phase_ == Phase::gathering && all(&Member::joined)) {
    fill_random(table_.secret);
    for (const Member& member : members_) table_.ranks.push_back(member.entry);
    phase_ = Phase::exchanging;
  } else if (phase_ == Phase::exchanging && all(&Member::ready)) {
    phase_ = Phase::complete;
  }
}

void Rendezvous::set_ready(int rank, Bytes announced) {
  if (phase_ != Phase::exchanging) return;
  Member& member = members_[static_cast<std::size_t>(rank)];
  member.ready = true;
  member.announced = std::move(announced);
}

void Rendezvous::fail(const Failure& failure) {
  if (is_over()) return;
  phase_ = Phase::failed;
  failure_ = failure;
}

void Rendezvous::rank_exited(int rank) {
  fail({hcclSystemError, text(describe_rank(rank),
                              " exited during initialisation; see its own "
                              "output, then start all ranks again")});
}

void Rendezvous::rank_left(int rank, const Failure& own) {
  fail({own.code, text(describe_rank(rank), " failed during initialisation: ", own.text)});
}

void Rendezvous::rank_gave_up(int rank, std::uint32_t seconds) {
  if (is_over()) return;
  const bool gathering = phase_ == Phase::gathering;
  fail({hcclInternalError,
        text(waited_for(), " after ", seconds, " s (", describe_rank(rank), " gave up waiting); ",
             gathering ? "start every missing rank" : "check whether every rank is running",
             ", or raise HCCL_INIT_TIMEOUT")});
}

bool Rendezvous::has_joined(int rank) const {
  return rank >= 0 && rank < size() && members_[static_cast<std::size_t>(rank)].joined;
}

std::string Rendezvous::waited_for() const {
  const bool gathering = phase_ == Phase::gathering;
  const std::vector<int> ranks = ranks_where(gathering ? &Member::joined : &Member::ready, false);
  return text(rank_list(ranks), ranks.size() == 1 ? " has" : " have",
              gathering ? " not joined" : " not finished exchanging descriptors");
}

Failure Rendezvous::refusal_when_over() const {
  if (phase_ == Phase::failed) return failure_;
  return {hcclInvalidUsage,
          text("the communicator is already complete: its ", size(),
               " ranks have all joined; create another one with a new unique id or, with "
               "HCCL_COMM_ID, on another port")};
}

std::string Rendezvous::describe_rank(int rank) const {
  return rank_text(rank, members_[static_cast<std::size_t>(rank)].entry.process);
}

Failure Rendezvous::size_mismatch(const Hello& hello) const {
  std::vector<int> others = arrivals_;
  std::ranges::sort(others);
  return {hcclInvalidArgument,
          text("the ranks disagree on the size of the communicator: ",
               rank_text(hello.rank, hello.process), " passes ", hello.size, ", but ",
               rank_list(others), others.size() == 1 ? " passes " : " pass ", size(),
               "; start every rank with the same size")};
}

Failure Rendezvous::second_claim(const Hello& hello, const std::string& address) const {
  const Member& first = members_[static_cast<std::size_t>(hello.rank)];
  return {hcclInvalidUsage,
          text("rank ", hello.rank, " is already taken by pid ", first.entry.process.pid,
               " on host ", first.entry.process.host, " (", first.address, "), and pid ",
               hello.process.pid, " on host ", hello.process.host, " (", address,
               ") claims it too; give every process a rank of its own")};
}

bool Rendezvous::several_nodes() const {
  return std::ranges::any_of(table_.ranks, [&](const TableEntry& entry) {
    return entry.process.node != table_.ranks.front().process.node;
  });
}

bool Rendezvous::all_announced() const {
  return std::ranges::none_of(members_,
                              [](const Member& member) { return member.announced.empty(); });
}

std::string Rendezvous::describe_ranks(const std::vector<int>& ranks) const {
  if (ranks.size() == 1) return describe_rank(ranks.front());
  std::vector<std::string> hosts;
  for (const int rank : ranks) {
    const std::string& host = members_[static_cast<std::size_t>(rank)].entry.process.host;
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  std::string list;
  for (const std::string& host : hosts) list += text(list.empty() ? "" : ", ", host);
  return text(rank_list(ranks), hosts.size() == 1 ? " (host " : " (hosts ", list, ')');
}

std::vector<Bytes> Rendezvous::announced() const {
  std::vector<Bytes> all;
  for (const Member& member : members_) all.push_back(member.announced);
  return all;
}

std::vector<int> Rendezvous::ranks_where(bool Member::*flag, bool value) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (members_[static_cast<std::size_t>(rank)].*flag == value) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace hccl::bootstrap
