// SPDX-License-Identifier: Apache-2.0
// Follows the waits from rank to rank.
#include "bootstrap/wait_for_graph.h"

#include "base/rank_text.h"
#include "base/text.h"

#include <algorithm>

namespace hccl::bootstrap {
namespace {

constexpr std::size_t kMostOfACircle = 4;
constexpr std::size_t kMostOfARank = 64;
// A rank that has not answered may be waiting for any idle rank. If more than kMaxSuspects are
// idle, none of them is suspected.
constexpr std::size_t kMaxSuspects = 4;

// Orders the positions of a stream by their numbers: "op 9 of stream 0" is shorter than "op 10 of
// stream 0".
struct EarlierPosition {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

bool is_in_progress(const Waiting& one) { return !one.call.empty() && !one.done; }

bool calls(const std::vector<Waiting>& said) { return std::ranges::any_of(said, is_in_progress); }

}  // namespace

void WaitForGraph::add(int rank, Waiting waiting) {
  std::vector<Waiting>& said = said_[rank];
  if (said.size() < kMostOfARank) said.push_back(std::move(waiting));
}

std::string WaitForGraph::mismatch() const {
  const std::string calls = difference([](const Waiting& one) { return one.call; });
  if (!calls.empty()) return calls + "; every rank must make the same calls in the same order";
  const std::string ways = difference(
      [](const Waiting& one) { return text("running ", one.call, " with ", one.algorithm); });
  return ways.empty() ? "" : ways + "; set the same HCCL_* variables on all ranks";
}

std::string WaitForGraph::difference(std::string (*what)(const Waiting&)) const {
  // By position, then by what(call).
  std::map<std::string, std::map<std::string, std::set<int>>, EarlierPosition> at;
  for (const auto& [rank, all] : said_) {
    for (const Waiting& one : all) {
      if (!one.position.empty() && !one.call.empty()) at[one.position][what(one)].insert(rank);
    }
  }
  const auto list = [](const std::set<int>& ranks) {
    return rank_list({ranks.begin(), ranks.end()});
  };
  for (const auto& [position, ranks_of] : at) {
    if (ranks_of.size() < 2) continue;
    const auto fewer = [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    };
    const auto usual = std::ranges::max_element(ranks_of, fewer);
    std::string odd;
    for (auto one = ranks_of.begin(); one != ranks_of.end(); ++one) {
      if (one != usual) odd += text(odd.empty() ? "" : ", ", list(one->second), ' ', one->first);
    }
    return text(position, ": ", odd, " but ", list(usual->second), ' ', usual->first);
  }
  return {};
}

bool WaitForGraph::is_held_at(int rank, const std::string& position) const {
  const auto said = said_.find(rank);
  return said != said_.end() && std::ranges::any_of(said->second, [&](const Waiting& one) {
           return !one.done && one.position == position && one.blocks == position;
         });
}

std::string WaitForGraph::calls_at(const std::string& position) const {
  std::map<std::string, std::set<int>> ranks_of;  // sets: a rank may report a call twice
  for (const auto& [rank, all] : said_) {
    for (const Waiting& one : all) {
      if (!one.done && one.position == position) ranks_of[one.call].insert(rank);
    }
  }
  std::string list;
  for (const auto& [call, ranks] : ranks_of) {
    const std::vector<int> ascending(ranks.begin(), ranks.end());
    list += text(list.empty() ? "" : ", ", rank_list(ascending), ' ', call);
  }
  return list;
}

std::string WaitForGraph::deadlock() const {
  for (const auto& [rank, all] : said_) {
    for (const Waiting& one : all) {
      if (one.done || !one.position.empty() || one.blocks.empty()) continue;
      const auto held = [&](int peer) { return is_held_at(peer, one.blocks); };
      if (std::ranges::none_of(one.awaited, held)) continue;
      return text("rank ", rank, ' ', one.call, " but ", calls_at(one.blocks),
                  "; every rank must make the same calls in the same order");
    }
  }
  return {};
}

std::set<int> WaitForGraph::reached_from(int asker) const {
  std::set<int> reached{asker};
  std::vector<int> open{asker};
  while (!open.empty()) {
    const auto said = said_.find(open.back());
    open.pop_back();
    if (said == said_.end()) continue;
    for (const Waiting& one : said->second) {
      for (const int rank : one.awaited) {
        if (reached.insert(rank).second) open.push_back(rank);
      }
    }
  }
  return reached;
}

std::string WaitForGraph::root_cause(
    int asker, const std::set<int>& gone,
    const std::function<std::string(const std::vector<int>&)>& describe) const {
  const std::set<int> reached = reached_from(asker);
  std::vector<int> left, silent, idle, idle_elsewhere;
  for (const int rank : reached) {
    if (gone.contains(rank)) {
      left.push_back(rank);
    } else if (!said_.contains(rank)) {
      silent.push_back(rank);
    }
  }
  for (const auto& [rank, said] : said_) {
    if (gone.contains(rank) || calls(said)) continue;
    (reached.contains(rank) ? idle : idle_elsewhere).push_back(rank);
  }
  std::string clause;
  const auto add = [&](const std::vector<int>& ranks, const char* what) {
    if (!ranks.empty()) clause += text(clause.empty() ? "" : ", and for ", describe(ranks), what);
  };
  add(left, ", no longer in the communicator");
  add(silent, ", stopped or out of reach");
  add(idle, ", which had no call in progress on this communicator");
  if (!silent.empty() && !idle_elsewhere.empty() && idle_elsewhere.size() <= kMaxSuspects) {
    clause += text("; a rank that does not answer may be waiting for ", describe(idle_elsewhere),
                   ", which had no call in progress on this communicator");
  }
  return clause.empty() ? circle(reached) : clause;
}

std::string WaitForGraph::circle(const std::set<int>& ranks) const {
  std::string list;
  std::size_t shown = 0;
  bool only_messages = true;
  for (const int rank : ranks) {
    const auto said = said_.find(rank);
    if (said == said_.end() || !calls(said->second)) continue;
    const Waiting& one = *std::ranges::find_if(said->second, is_in_progress);
    only_messages = only_messages && one.position.empty();
    if (++shown > kMostOfACircle) continue;
    list += text(list.empty() ? "" : "; ", "rank ", rank, " in ", one.doing());
    if (!one.awaited.empty()) list += text(" for ", rank_list(one.awaited));
  }
  return text("ranks that wait for each other (", list, ")",
              only_messages ? ", as messages do that are not in one group" : "");
}

}  // namespace hccl::bootstrap
