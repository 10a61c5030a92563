// SPDX-License-Identifier: Apache-2.0
// Stall diagnosis. A call that has waited for long, or has found a mismatch, queries all ranks. The
// control thread of each rank receives the queries. The threads of the rank's calls in progress
// answer them, because only a call's own thread can safely read what the call waits for; if no call
// is in progress, the control thread answers. StallReports passes the queries and answers between
// the threads.
#pragma once

#include "base/deadline.h"
#include "bootstrap/control_link.h"
#include "bootstrap/wait_for_graph.h"
#include "call/collective_call.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hccl::network {

// The position of a collective, and the algorithm with which it runs. The ordinal of its stream and
// its number on that stream are the same on all ranks.
struct CallPosition {
  std::uint32_t stream = 0;
  std::uint64_t number = 0;
  std::string_view algorithm{};

  [[nodiscard]] std::string text() const;
};

class StallReports {
 public:
  using Time = std::chrono::steady_clock::time_point;

  using Link = std::shared_ptr<bootstrap::ControlLink>;

  // Must be called before the first collective or message starts. `link` returns the link to the
  // other nodes, or null when the link has ended. `judge` names the process that gives verdicts,
  // for error texts.
  void attach(std::function<Link()> link, std::string judge) {
    link_ = std::move(link);
    judge_ = std::move(judge);
  }

  // Called by the thread of a call, when the call's watchdog is created and destroyed.
  void enter() { ++calls_; }
  void leave() { --calls_; }
  // Records a completed collective, for answers.
  void note_done(const CallPosition& position, const CollectiveCall& call);
  // Returns the number of queries so far. When it increases, every waiting call must call answer().
  [[nodiscard]] std::uint64_t asked() const { return asked_.load(); }
  // Sends the server the last kRemembered completed collectives, and then `waiting`. Does nothing
  // if there is no link.
  void answer(const bootstrap::Waiting& waiting) const noexcept;
  // Queries all ranks: see ControlLink::ask_who_is_missing(). Returns false if there are no other
  // nodes.
  bool ask(const bootstrap::Waiting& waiting);
  // Returns what a stalled call waits for, in words that follow "waited for": the verdict if one
  // has arrived since `then`, or else `awaited`. If a verdict is overdue, names the process that
  // should have given it, and `awaited`.
  [[nodiscard]] std::string root_cause(const std::string& awaited, Time then) const;
  // Returns the first of `ranks` that has left the communicator, or -1 if none of them has.
  [[nodiscard]] int departed_of(const std::vector<int>& ranks) const;
  [[nodiscard]] bool anybody_departed() const { return anybody_departed_; }

  // Called by the control thread.
  void on_inquiry();
  void on_departed(int rank);
  void on_verdict(const std::string& root_cause);

 private:
  std::function<Link()> link_;  // empty if there are no other nodes
  std::string judge_;
  std::atomic<int> calls_{0};
  std::atomic<std::uint64_t> asked_{0};
  std::atomic<bool> anybody_departed_{false};
  struct Done {
    CallPosition position;
    CollectiveCall call;
  };
  static constexpr std::size_t kRemembered = 8;

  mutable std::mutex mutex_;
  std::array<Done, kRemembered> done_;
  std::size_t done_count_ = 0;
  std::set<int> departed_;
  std::string verdict_;  // the latest
  Time verdict_time_{};
  Deadline verdict_due_ = Deadline::never();
};

}  // namespace hccl::network
