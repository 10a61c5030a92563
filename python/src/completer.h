// SPDX-License-Identifier: Apache-2.0
// Ends operations whose futures are awaited, and runs the futures' callbacks, which may queue
// further operations and wait for them.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include <c10/util/intrusive_ptr.h>
#include <sys/types.h>

namespace hccl_torch {

class Work;

// One thread at a time waits for operations. Before it runs a future's callbacks it passes that
// job on, so that a callback may wait for another future. Threads start when they are needed, and
// are as many as callbacks that wait at the same time, and one more.
class Completer {
 public:
  Completer();
  Completer(const Completer&) = delete;
  Completer& operator=(const Completer&) = delete;

  // Blocks until no callback runs and no work is left, at most some seconds. Not counting one that
  // calls this. Returns whether that is so.
  bool drain();
  // The same, and ends the threads.
  bool stop();

  // Ends `work` as soon as it has run. Does not block.
  void post(c10::intrusive_ptr<Work> work);

 private:
  // Lives as long as the threads, which may outlive the completer.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<c10::intrusive_ptr<Work>> works;
    bool has_leader = false;  // a thread waits for an operation
    int threads = 0;
    int idle = 0;  // threads that wait for work
    bool stopping = false;
  };

  static void run(const std::shared_ptr<State>& state);
  // With the lock held: sees to it that a thread takes the next work.
  static void call_for_leader(const std::shared_ptr<State>& state);

  // Returns 1 on a thread of this object, else 0.
  [[nodiscard]] int own() const;

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  const pid_t process_;  // a forked child has no threads to stop
};

}  // namespace hccl_torch
