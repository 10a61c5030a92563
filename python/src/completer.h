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

// The operations of a stream end in order, so only one thread at a time waits for them. Before this
// thread runs a future's callbacks, another thread takes over the waiting, so that a callback may
// wait for another future. Threads start on demand: one for each stream with awaited operations,
// and one for each running callback.
class Completer {
 public:
  Completer();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  // The maximum time that callbacks can delay the end of a group.
  static constexpr std::chrono::seconds kDrainTimeout{5};

  // Blocks until no callback runs and no work is left, but for at most `timeout`. Ignores the
  // callback that calls it. Returns false on a time-out.
  bool drain(std::chrono::milliseconds timeout = kDrainTimeout);
  // Does the same as drain(), and ends the threads.
  bool stop();
  // Stops running callbacks: the futures of works that end later stay incomplete.
  void abandon();
  // Sets a function that the completer calls before it runs callbacks. After the function returns
  // false, no further callbacks run, because a thread that requests the lock of an ending
  // interpreter would never return. With null, callbacks always run.
  static void set_condition(bool (*can_run)());

  // Ends `work` on another thread after the work has run. Does not block.
  void post(c10::intrusive_ptr<Work> work);

 private:
  // The works of a stream.
  struct Lane {
    std::deque<c10::intrusive_ptr<Work>> works;
    bool has_waiter = false;  // whether a thread waits for the first work
  };
  // The state that the threads share. They may outlive the completer.
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
  // Returns a lane without a waiter, or the end of the map. Call it with the lock held.
  [[nodiscard]] static std::map<const void*, Lane>::iterator find_lane(State& state);
  // Completes the future of a work that has ended. Call it without the lock.
  static void complete_future(c10::intrusive_ptr<Work> work, bool abandoned);
  // Wakes or starts a thread for the next work. Call it with the lock held.
  static void call_for_thread(const std::shared_ptr<State>& state);

  // Returns 1 if called on a thread of this object, else 0.
  [[nodiscard]] int own() const;

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  const pid_t process_;  // the process that has the threads; a forked child has no threads to stop
};

}  // namespace hccl_torch
