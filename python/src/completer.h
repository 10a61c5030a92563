// SPDX-License-Identifier: Apache-2.0
// Completes operations' futures on its own threads. These threads run the futures' callbacks, which
// may queue further operations and wait for them.
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

// Only one thread at a time waits for the operations of a stream, because they end in order. Before
// this thread runs callbacks, another thread takes over the wait, so a callback may wait for
// another future. A new thread starts if fewer threads are idle than Lanes have no waiter.
class Completer {
 public:
  Completer();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  // The longest time for which stop() waits, and the default limit of drain().
  static constexpr std::chrono::seconds kDrainTimeout{5};

  // Blocks until all posted operations have ended and no callback is running, but for at most
  // `timeout`. If a callback calls drain(), drain() does not wait for that callback. Returns false
  // on a time-out.
  bool drain(std::chrono::milliseconds timeout = kDrainTimeout);
  // Ends the threads once all posted operations have ended. Blocks like drain(), for at most
  // kDrainTimeout. Returns false on a time-out.
  bool stop();
  // Prevents further callbacks on the completer's threads: if an operation ends later, its future
  // is not completed there.
  void abandon();
  // Sets a function that all completers call before they complete a future. If the function returns
  // false, the completer does not complete the future, so its callbacks do not run. `can_run` must
  // return false during interpreter shutdown, when a thread that requests the GIL would hang. With
  // null, completers complete all futures.
  static void set_condition(bool (*can_run)());

  // Makes one of the completer's threads wait until `work` has run, end it and complete its future.
  // Does not block.
  void post(c10::intrusive_ptr<Work> work);

 private:
  // The posted operations that share a Work::lane().
  struct Lane {
    std::deque<c10::intrusive_ptr<Work>> works;
    bool has_waiter = false;  // whether a thread is waiting for works.front()
  };
  // The state that the threads share. The threads may outlive the completer.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<const void*, Lane> lanes;  // by Work::lane(); no lane is empty
    int threads = 0;
    int idle = 0;  // number of threads that have no work to complete, including new threads
    bool stopping = false;
    bool abandoned = false;
  };

  static void run(const std::shared_ptr<State>& state);
  // Returns a lane without a waiter, or the end of the map. Call it with the lock held.
  [[nodiscard]] static std::map<const void*, Lane>::iterator find_lane(State& state);
  // Completes the future of an operation that has ended. If `abandoned`, or if the function of
  // set_condition() returns false, leaks the Work instead. Call it without the lock.
  static void complete_future(c10::intrusive_ptr<Work> work, bool abandoned);
  // Wakes the idle threads. If they are fewer than the lanes without a waiter, starts a thread,
  // because a callback may wait for the future of any of these lanes. Call it with the lock held.
  static void call_for_thread(const std::shared_ptr<State>& state);

  // Returns 1 if the calling thread belongs to this object, else 0.
  [[nodiscard]] int own() const;

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  const pid_t process_;  // the process that has the threads; a forked child has none
};

}  // namespace hccl_torch
