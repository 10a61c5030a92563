// SPDX-License-Identifier: Apache-2.0
// Passes on questions and answers when a call of some rank waits for long: between this rank's
// streams' threads, which know what they wait for, and the control thread, which hears the
// questions.
#pragma once

#include "base/deadline.h"
#include "bootstrap/bootstrap.h"
#include "node/collective_call.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hccl::comm {

// The identity of a collective among those of all ranks: the number of its call in its stream's
// lane. And how it runs, for that must be alike too.
struct Place {
  std::uint32_t stream = 0;
  std::uint64_t number = 0;
  std::string_view algorithm{};

  [[nodiscard]] std::string text() const;
};

class Inquiries {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // How to reach the others: ControlLink's.
  struct Control {
    std::function<void(const bootstrap::Waiting&)> answer;
    std::function<void(const bootstrap::Waiting&)> ask;
    std::string judge;  // who gives the verdict, for texts
  };
  // Before any call runs.
  void attach(Control control) { control_ = std::move(control); }

  // By the thread of a call, at its begin and end.
  void enter() { ++calls_; }
  void leave() { --calls_; }
  // A collective is done.
  void note_done(const Place& place, const node::CollectiveCall& call);
  // Rises with every question that calls are to answer.
  [[nodiscard]] std::uint64_t asked() const { return asked_.load(); }
  // Tells the server of the calls that were done last, and then of the one that waits.
  void answer(const bootstrap::Waiting& waiting) const noexcept;
  // As ControlLink::ask_who_is_missing(). Returns whether there is somebody to ask.
  bool ask(const bootstrap::Waiting& waiting);
  // Whom a call waits for in the end: as it has been found since `then`, else `awaited`, and who
  // should have found it.
  [[nodiscard]] std::string culprits(const std::string& awaited, Time then) const;
  // Returns one of `ranks` that has left the communicator, or -1 if none has.
  [[nodiscard]] int departed_of(const std::vector<int>& ranks) const;
  [[nodiscard]] bool anybody_departed() const { return anybody_departed_; }

  // By the control thread.
  void on_inquiry();
  void on_departed(int rank);
  void on_verdict(const std::string& culprits);

 private:
  Control control_;
  std::atomic<int> calls_{0};
  std::atomic<std::uint64_t> asked_{0};
  std::atomic<bool> anybody_departed_{false};
  struct Done {
    Place place;
    node::CollectiveCall call;
  };
  static constexpr std::size_t kRemembered = 8;

  mutable std::mutex mutex_;
  std::array<Done, kRemembered> done_;
  std::size_t done_count_ = 0;
  std::set<int> departed_;
  std::string verdict_;  // the last there was
  Time verdict_time_{};
  Deadline verdict_due_ = Deadline::never();
};

}  // namespace hccl::comm
