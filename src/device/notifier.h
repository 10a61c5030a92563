// SPDX-License-Identifier: Apache-2.0
// The thread that tells the program that work of streams has run. The program's callbacks run on
// it and may call the library, which work on a stream must not.
#pragma once

#include "base/waiter.h"
#include "device/progress.h"

#include <hccl_types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace hccl::device {

class Stream;

// To be given once, when the work up to `up_to` has run: the result of the work in (after, up_to].
struct Notification {
  std::uint64_t after;
  std::uint64_t up_to;
  void (*callback)(hcclResult_t result, const char* message, void* argument);
  void* argument;
};

// Sleeps until a stream has come to a position that somebody wants to be told of. Thread-safe.
class Notifier {
 public:
  // Never destroyed: streams may ring it while the process exits.
  [[nodiscard]] static Notifier& instance();

  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Starts the thread if it does not run. Does not block. Throws Error(hcclSystemError) if there
  // can be no thread, or std::bad_alloc; then the callback is never called.
  void add(Stream& stream, const Notification& notification);
  // A stream may have come to a position. Its news must have been stored with seq_cst order.
  void ring() noexcept { bell_.ring(); }
  // Gives what is due, and ends the thread; waits for the callbacks. Called by one of them it does
  // nothing. Notifications that are not due stay, and are given after the next add().
  void stop();

 private:
  // The notifications of one stream, by position.
  struct Watch {
    std::shared_ptr<Progress> progress;
    std::weak_ptr<Stream> stream;
    std::deque<Notification> pending;
  };
  struct Due {
    std::shared_ptr<Progress> progress;
    std::weak_ptr<Stream> stream;
    Notification notification;
  };

  Notifier() = default;
  ~Notifier() = default;
  void run();
  // Returns whether there was one. Streams take turns.
  [[nodiscard]] bool take_due(Due& due);
  static void give(const Due& due);
  void give_all();
  // By the thread, which ends if it returns true.
  [[nodiscard]] bool ends();
  // By the thread before it sleeps: asks the streams to ring.
  [[nodiscard]] bool has_news();
  [[nodiscard]] Watch& watch_of(Stream& stream);
  void start();
  static void stop_at_exit();

  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Watch> watches_;  // each with pending notifications
  std::size_t turn_ = 0;        // the watch that is looked at first
  bool running_ = false;
  bool stopping_ = false;
  bool exiting_ = false;
  std::uint64_t ends_ = 0;  // how often the thread has ended
  Doorbell bell_;
};

}  // namespace hccl::device
