// SPDX-License-Identifier: Apache-2.0
// Completes the futures of operations on threads of its own. These threads run the futures'
// callbacks, which may queue further operations and wait for them.
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
// another future. Threads start on demand: one for each stream with posted works, and one for each
// running callback.
class Completer {
 public:
  Completer();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  // The longest time for which callbacks can delay the end of a group.
  static constexpr std::chrono::seconds kDrainTimeout{5};

  // Blocks until all posted works have ended and no callback runs, but for at most `timeout`. If a
  // callback calls drain(), drain() does not wait for that callback. Returns false on a time-out.
  bool drain(std::chrono::milliseconds timeout = kDrainTimeout);
  // Ends the threads when all posted works have ended. Blocks like drain(), for at most
  // kDrainTimeout. Returns false on a time-out.
  bool stop();
  // Prevents all further callbacks: the futures of works that end later are never completed.
  void abandon();
  // Sets a function that is called before each future is completed. If the function returns false,
  // the future is not completed and its callbacks do not run. Return false when the interpreter is
  // ending, because a thread that then requests the GIL never returns. If `can_run` is null,
  // callbacks always run.
  static void set_condition(bool (*can_run)());

  // Ends `work` and completes its future on a thread of the completer, after the work has run. Does
  // not block.
  void post(c10::intrusive_ptr<Work> work);

 private:
  // The posted works with the same Work::lane().
  struct Lane {
    std::deque<c10::intrusive_ptr<Work>> works;
    bool has_waiter = false;  // whether a thread waits for the first work
  };
  // The state that the threads share. The threads may outlive the completer.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<const void*, Lane> lanes;  // by Work::lane(); no lane is empty
    int threads = 0;
    int idle = 0;  // number of threads that have no work to complete
    bool stopping = false;
    bool abandoned = false;
  };

  static void run(const std::shared_ptr<State>& state);
  // Returns a lane without a waiter, or the end of the map. Call it with the lock held.
  [[nodiscard]] static std::map<const void*, Lane>::iterator find_lane(State& state);
  // Completes the future of a work that has ended. If `abandoned`, leaks the work instead. Call it
  // without the lock.
  static void complete_future(c10::intrusive_ptr<Work> work, bool abandoned);
  // Wakes the idle threads, or starts a thread if none is idle, to complete the next Work. Call it
  // with the lock held.
  static void call_for_thread(const std::shared_ptr<State>& state);

  // Returns 1 if called on a thread of this object, else 0.
  [[nodiscard]] int own() const;

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  const pid_t process_;  // the process that has the threads; a forked child has none
};

}  // namespace hccl_torch
