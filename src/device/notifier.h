// SPDX-License-Identifier: Apache-2.0
// The thread that notifies the program of work that streams have run. The program's callbacks run
// on it and may call the library, unlike work on a stream.
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

// Delivered once, when the work up to `up_to` has run: the result of the work in (after, up_to].
struct Notification {
  std::uint64_t after;
  std::uint64_t up_to;
  void (*callback)(hcclResult_t result, const char* message, void* argument);
  void* argument;
};

// Sleeps until a stream reaches a position for which there is a notification. Thread safety: any
// thread.
class Notifier {
 public:
  // Never destroyed: streams may ring it while the process exits.
  [[nodiscard]] static Notifier& instance();

  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Starts the thread if it does not run. Does not block. Throws Error(hcclSystemError) if no
  // thread can be started, or std::bad_alloc; then the callback is never called.
  void add(Stream& stream, const Notification& notification);
  // Call when a stream may have reached a position, after its progress was stored with seq_cst
  // order.
  void ring() noexcept { bell_.ring(); }
  // Delivers due notifications, waits for their callbacks and ends the thread. Does nothing if
  // called by a callback. Other notifications stay, and are delivered after the next add().
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
  // Takes the next due notification and returns true, or returns false if there is none. Streams
  // take turns.
  [[nodiscard]] bool take_due(Due& due);
  static void give(const Due& due);
  void give_all();
  // Called by the thread, which ends if it returns true.
  [[nodiscard]] bool ends();
  // Called by the thread before it sleeps. Asks the streams to ring, and returns whether one has
  // progressed meanwhile.
  [[nodiscard]] bool has_news();
  [[nodiscard]] Watch& watch_of(Stream& stream);
  void start();
  static void stop_at_exit();

  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Watch> watches_;  // each with pending notifications
  std::size_t turn_ = 0;        // the watch that is checked first
  bool running_ = false;
  bool stopping_ = false;
  bool exiting_ = false;
  std::uint64_t ends_ = 0;  // how often the thread has ended
  Doorbell bell_;
};

}  // namespace hccl::device
