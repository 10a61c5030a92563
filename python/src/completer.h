// SPDX-License-Identifier: Apache-2.0
// Ends operations whose futures are awaited, and runs the futures' callbacks, which may queue
// further operations and wait for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include <c10/util/intrusive_ptr.h>
#include <sys/types.h>

namespace hccl_torch {

class Work;

// Operations of one stream end in order, so one thread at a time waits for those of a stream.
// Before it runs a future's callbacks it passes that job on, so that a callback may wait for
// another future. Threads start when they are needed, and are as many as streams whose operations
// are waited for and callbacks that run.
class Completer {
 public:
  Completer();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  // How long a callback that waits for something else can keep the end of a group waiting.
  static constexpr std::chrono::seconds kPatience{5};

  // Blocks until no callback runs and no work is left, at most `patience`. Ignores
  // the calling callback itself. Returns false if `patience` ran out first.
  bool drain(std::chrono::milliseconds patience = kPatience);
  // The same, and ends the threads.
  bool stop();
  // Runs no further callbacks: the futures of works that end from now on stay incomplete.
  void abandon();
  // No callback runs once `can_run` returns false, as a thread that asks for the lock of an
  // interpreter that has begun to end would never return. Null: callbacks always run.
  static void set_condition(bool (*can_run)());

  // Ends `work` as soon as it has run. Does not block.
  void post(c10::intrusive_ptr<Work> work);

 private:
  // The works of a stream.
  struct Lane {
    std::deque<c10::intrusive_ptr<Work>> works;
    bool is_attended = false;  // a thread waits for the first
  };
  // Lives as long as the threads, which may outlive the completer.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<const void*, Lane> lanes;  // by stream; none is empty
    int threads = 0;
    int idle = 0;  // threads that wait for work
    bool stopping = false;
    bool abandoned = false;
  };

  static void run(const std::shared_ptr<State>& state);
  // All with the lock held. Returns a lane that no thread attends to, or the end.
  [[nodiscard]] static std::map<const void*, Lane>::iterator find_lane(State& state);
  // Completes the future of a work that has ended. Without the lock.
  static void settle(c10::intrusive_ptr<Work> work, bool abandoned);
  // Sees to it that a thread takes the next work.
  static void call_for_thread(const std::shared_ptr<State>& state);

  // Returns 1 on a thread of this object, else 0.
  [[nodiscard]] int own() const;

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  const pid_t process_;  // a forked child has no threads to stop
};

}  // namespace hccl_torch
