// SPDX-License-Identifier: Apache-2.0
// Stall diagnosis: passes queries and reports between this rank's stream threads, which know what
// they wait for, and the control thread, which receives the queries when a call of some rank has
// waited for a second or more.
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

// The position of a collective: the ordinal of its stream and its number there, the same on all
// ranks, and the algorithm by which it runs.
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

  // `link` returns the link to the other nodes, or null after that link has ended. `judge` names
  // the process that gives the verdict, for error texts. Call before any call runs.
  void attach(std::function<Link()> link, std::string judge) {
    link_ = std::move(link);
    judge_ = std::move(judge);
  }

  // Called by the thread of a call when the call begins and ends.
  void enter() { ++calls_; }
  void leave() { --calls_; }
  // Records a completed collective.
  void note_done(const CallPosition& position, const CollectiveCall& call);
  // Returns a counter that increases with every query that waiting calls should answer.
  [[nodiscard]] std::uint64_t asked() const { return asked_.load(); }
  // Reports the most recently completed calls to the server, and then the waiting one.
  void answer(const bootstrap::Waiting& waiting) const noexcept;
  // Queries all ranks, as ControlLink::ask_who_is_missing() does. Returns whether there is a server
  // to ask.
  bool ask(const bootstrap::Waiting& waiting);
  // Returns the root cause of a stall as a clause: the verdict given since `then`, else `awaited`.
  // If the verdict is overdue, adds the name of the process that should have given it.
  [[nodiscard]] std::string root_cause(const std::string& awaited, Time then) const;
  // Returns one of `ranks` that has left the communicator, or -1 if none has.
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
