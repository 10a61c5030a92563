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
// another future. Threads start on demand: there are as many as streams with awaited operations and
// running callbacks.
class Completer {
 public:
  Completer();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  // Maximum time that a callback can delay the end of a group.
  static constexpr std::chrono::seconds kDrainTimeout{5};

  // Blocks until no callback runs and no work is left, at most `timeout`. Ignores the calling
  // callback itself. Returns false on a timeout.
  bool drain(std::chrono::milliseconds timeout = kDrainTimeout);
  // Does the same, and ends the threads.
  bool stop();
  // Stops running callbacks: futures of works that end from now on stay incomplete.
  void abandon();
  // Stops callbacks once `can_run` returns false: a thread that requests the lock of an ending
  // interpreter would never return. If `can_run` is null, callbacks always run.
  static void set_condition(bool (*can_run)());

  // Ends `work` as soon as it has run. Does not block.
  void post(c10::intrusive_ptr<Work> work);

 private:
  // The works of a stream.
  struct Lane {
    std::deque<c10::intrusive_ptr<Work>> works;
    bool has_waiter = false;  // a thread waits for the first
  };
  // Lives as long as the threads, which may outlive the completer.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<const void*, Lane> lanes;  // by stream; no lane is empty
    int threads = 0;
    int idle = 0;  // number of threads that wait for work
    bool stopping = false;
    bool abandoned = false;
  };

  static void run(const std::shared_ptr<State>& state);
  // Call these with the lock held. Returns a lane without a waiter, or the end.
  [[nodiscard]] static std::map<const void*, Lane>::iterator find_lane(State& state);
  // Completes the future of a work that has ended. Call without the lock.
  static void complete_future(c10::intrusive_ptr<Work> work, bool abandoned);
  // Wakes or starts a thread for the next work.
  static void call_for_thread(const std::shared_ptr<State>& state);

  // Returns 1 on a thread of this object, else 0.
  [[nodiscard]] int own() const;

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  const pid_t process_;  // a forked child has no threads to stop
};

}  // namespace hccl_torch
