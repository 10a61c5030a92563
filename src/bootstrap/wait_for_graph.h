// SPDX-License-Identifier: Apache-2.0
// A wait-for graph: given the ranks that each rank waits for, finds the ranks that block the
// others. Performs no I/O.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// A call that is in progress on a rank, or one of the last collectives that the rank completed.
struct Waiting {
  std::string position;      // "op 3 of stream 0"; empty for messages, which have none
  std::string call;          // describes the call; empty if the rank is in no call
  std::string algorithm;     // that runs the call; empty if the call has no position
  std::vector<int> awaited;  // ascending
  bool done = false;
  // The position of the collective that this call holds up: this call itself or, for a message, the
  // next collective on its stream. Set only if a thread of the program is blocked on the stream,
  // and so makes no other calls until this call ends.
  std::string blocks{};

  [[nodiscard]] std::string doing() const {
    return position.empty() ? call : position + ", " + call;
  }
};

class WaitForGraph {
 public:
  // Adds a rank's call. A rank may have several calls.
  void add(int rank, Waiting waiting);
  [[nodiscard]] std::size_t size() const { return said_.size(); }

  // Describes ranks that make different calls at the same position, or that run the same call with
  // different algorithms. Returns an empty text if there are none.
  [[nodiscard]] std::string mismatch() const;

  // Describes a deadlock: a rank waits in a send or receive for a second rank, which waits in a
  // collective that the first cannot reach. Returns an empty text if there is none. The deadlock
  // may still end, if another thread of the program is about to make the matching call.
  [[nodiscard]] std::string deadlock() const;

  // Follows the chains of waits from `asker`. Returns a clause that names the ranks at their ends
  // or, if there are none, in a cycle. If one of these ranks has not answered, also names the other
  // ranks that are in no call, if they are few: the silent rank may be waiting for one of them.
  // `gone`: the ranks that have left. `describe` names ranks.
  [[nodiscard]] std::string root_cause(
      int asker, const std::set<int>& gone,
      const std::function<std::string(const std::vector<int>&)>& describe) const;

 private:
  // Describes what each rank does at the earliest position of a stream at which what(call) differs
  // between ranks. Returns an empty text if there is no such position.
  [[nodiscard]] std::string difference(std::string (*what)(const Waiting&)) const;
  [[nodiscard]] std::set<int> reached_from(int asker) const;
  // Returns whether the rank waits at the position and its program can make no other call.
  [[nodiscard]] bool is_held_at(int rank, const std::string& position) const;
  // Returns the calls in progress at the position, with their ranks: "rank 0 all_reduce(8, float,
  // sum), ranks 1-3 barrier()".
  [[nodiscard]] std::string calls_at(const std::string& position) const;
  [[nodiscard]] std::string circle(const std::set<int>& ranks) const;

  std::map<int, std::vector<Waiting>> said_;
};

}  // namespace hccl::bootstrap
