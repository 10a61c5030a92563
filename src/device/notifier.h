// SPDX-License-Identifier: Apache-2.0
// The thread that calls the program's callbacks when streams have reached given positions. Unlike
// work on a stream, callbacks may call the library.
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

// A callback that receives the result of the work with tickets in (after, up_to]. Called after that
// work has run.
struct Notification {
  std::uint64_t after;
  std::uint64_t up_to;
  void (*callback)(hcclResult_t result, const char* message, void* argument);
  void* argument;
};

// Delivers each notification when the stream has reached the notification's position. Thread
// safety: any thread.
class Notifier {
 public:
  // Returns the process's notifier. It is never destroyed, because streams may ring it while the
  // process exits.
  [[nodiscard]] static Notifier& instance();

  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Adds a notification, and starts the thread if it is not running. Does not block. Throws
  // Error(hcclSystemError) if the thread cannot be started, or std::bad_alloc; in both cases the
  // callback is never called. Once the process is exiting, no callback is called.
  void add(Stream& stream, const Notification& notification);
  // Wakes the thread. Call it when a stream may have reached the position of a notification, after
  // the stream's progress has been stored with seq_cst order.
  void ring() noexcept { bell_.ring(); }
  // Delivers due notifications, waits for their callbacks and ends the thread. Does nothing if
  // called by a callback. Notifications that are not due remain; after the next add(), the thread
  // delivers them when they are due. Once the process is exiting, delivers nothing more, and waits
  // only briefly for a running callback.
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
  // Moves the next due notification to `due`. Returns false if none is due or the process is
  // exiting. Serves the streams round-robin.
  [[nodiscard]] bool take_due(Due& due);
  static void give(const Due& due);
  void give_all();
  // Returns whether the thread must end and, if so, records that it has ended. Called by the
  // thread.
  [[nodiscard]] bool ends();
  // Returns whether a notification is due or the thread must end. Unless the thread must end, first
  // asks the watched streams to wake it when their next notifications are due. Called by the thread
  // before it sleeps.
  [[nodiscard]] bool has_work();
  [[nodiscard]] Watch& watch_of(Stream& stream);
  void start();
  static void stop_at_exit();

  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Watch> watches_;  // one per stream with notifications
  std::size_t turn_ = 0;        // index of the watch that was checked last
  bool running_ = false;
  bool stopping_ = false;
  bool exiting_ = false;
  std::uint64_t ends_ = 0;  // number of times that the thread has ended
  Doorbell bell_;
};

}  // namespace hccl::device
