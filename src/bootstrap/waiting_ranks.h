// SPDX-License-Identifier: Apache-2.0
// Judges which rank holds the others up, from what each says it waits for. Pure.
#pragma once

#include "bootstrap/bootstrap.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hccl::bootstrap {

class WaitingRanks {
 public:
  // A rank may say it several times, once for each of its calls that wait.
  void add(int rank, Waiting waiting);
  [[nodiscard]] std::size_t size() const { return said_.size(); }

  // Ranks that are at the same place of different calls, or run one by different algorithms, and
  // both; empty if there are none.
  [[nodiscard]] std::string mismatch() const;

  // Ranks of which one waits in a send or receive for another, which waits in a collective that the
  // first cannot reach, and both; empty if there are none. It is no mistake yet: another thread of
  // the program may be about to make the other half of the message.
  [[nodiscard]] std::string deadlock() const;

  // Whom the rank waits for in the end, as a clause: those that its chain of waiting ranks leads to
  // and that wait for nobody. `gone`: have left the communicator. `describe`: names ranks.
  [[nodiscard]] std::string culprits(
      int asker, const std::set<int>& gone,
      const std::function<std::string(const std::vector<int>&)>& describe) const;

 private:
  // The first place where ranks differ in `what`, with them and it.
  [[nodiscard]] std::string difference(std::string (*what)(const Waiting&)) const;
  [[nodiscard]] std::set<int> reached_from(int asker) const;
  // Returns whether the rank waits at the place and its program can make no other call.
  [[nodiscard]] bool is_held_at(int rank, const std::string& place) const;
  // "rank 0 all_reduce(8, float, sum), ranks 1-3 barrier()"
  [[nodiscard]] std::string calls_at(const std::string& place) const;
  [[nodiscard]] std::string circle(const std::set<int>& ranks) const;

  std::map<int, std::vector<Waiting>> said_;
};

}  // namespace hccl::bootstrap
