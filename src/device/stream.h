// SPDX-License-Identifier: Apache-2.0
// A stream: work in order. A thread that waits also works: when it synchronises, it runs the
// stream's queue itself. A worker thread runs it when nobody waits.
#pragma once

#include "base/deadline.h"
#include "base/waiter.h"
#include "device/command_queue.h"
#include "device/progress.h"
#include "device/stream_worker.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace hccl::device {

class Device;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Device& device, std::uint64_t id);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Queues work (a callable that returns an Outcome and throws nothing) and returns its ticket.
  // Makes no system call if the stream was used in the last 10 ms. Blocks while the queue is full
  // and moving.
  template <class Work>
  std::uint64_t enqueue(Work&& work) {
    make_room();
    return emplace_at_once<std::decay_t<Work>>(std::forward<Work>(work));
  }
  // Blocks while the queue is full and moving.
  void make_room() {
    if (queued() >= full_.load(std::memory_order_relaxed)) [[unlikely]]
      wait_for_room();
  }
  // The same for a caller that must not block, and has made room before; makes the work in place.
  template <class Work, class... Arguments>
  std::uint64_t emplace_at_once(Arguments&&... arguments) {
    worker_.start_once();
    std::uint64_t ticket = 0;
    {
      const std::lock_guard lock(lock_);
      require_open();
      ticket = queue_.push<Work>(std::forward<Arguments>(arguments)...);
    }
    if (worker_.is_asleep()) worker_.ring();
    return ticket;
  }
  // For what is to follow the work that has been queued, which may be the last: also while the
  // stream closes. Not done if all has run.
  template <class Work, class... Arguments>
  void emplace_behind(Arguments&&... arguments) {
    {
      const std::lock_guard lock(lock_);
      if (queued() == 0) return;
      queue_.push<Work>(std::forward<Arguments>(arguments)...);
    }
    if (worker_.is_asleep()) worker_.ring();
  }
  // Throws SynError(synInvalidArgument) from close() on.
  void require_open() const {
    if (closing_.load(std::memory_order_relaxed)) [[unlikely]]
      refuse();
  }

  // Runs or waits for the work up to `ticket`. By a thread of the program, or in a command of
  // another stream.
  void run_until(std::uint64_t ticket, bool by_program = true);
  // Waits for the work up to `ticket` until the deadline, running at most what does not wait.
  // Returns whether it has run.
  [[nodiscard]] bool wait_until(std::uint64_t ticket, const Deadline& deadline);
  // Returns whether a thread of the program waits for this stream, and so calls nothing else
  // meanwhile.
  [[nodiscard]] bool host_is_waiting() const noexcept {
    return attended_.load(std::memory_order_relaxed) != 0;
  }
  // For ranks that share cores: they gain more by beginning calls ahead of their turn, which they
  // may while the program waits for all it has queued, than by a queue that stays in the cache.
  void keep_long_queue() noexcept {
    least_full_.store(kLongQueue, std::memory_order_relaxed);
    full_.store(kLongQueue, std::memory_order_relaxed);
  }

  // Blocks for everything queued so far; a failure is reported once. Writes its reason to `reason`,
  // unless that is null.
  [[nodiscard]] Outcome synchronize(std::string* reason = nullptr);
  // Returns true if everything queued so far is complete; then tells how it ended, and why it
  // failed.
  [[nodiscard]] bool query(Outcome* outcome, std::string* reason = nullptr);
  // Sees to it that work nobody waits for begins now.
  void hurry();

  [[nodiscard]] Capture capture();
  // Makes work that is queued from now on wait for what was captured, and fail with it.
  void follow(Capture capture);
  // Waits for work of another (or this) stream, helping it along. By the stream's owner, in a
  // command.
  static void wait_for(const Capture& capture);

  // The program knows of a failure behind which this stream's work does not run: what is queued
  // from now on runs again.
  void release(const WorkFailure& failure) noexcept;

  // Called when the stream is destroyed, after its last work, if `owner` still lives.
  void at_destruction(std::weak_ptr<const void> owner, std::function<void()> action);
  // Takes no more work, and runs what it has.
  void close();

  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }
  [[nodiscard]] const std::shared_ptr<Progress>& progress() const noexcept { return progress_; }
  [[nodiscard]] std::uint64_t pushed() const noexcept { return queue_.pushed(); }
  // Enough for a thread that has run it in passing to go on queueing.
  [[nodiscard]] bool has_room() const noexcept { return queued() < least_full() / 4 * 3; }
  [[nodiscard]] bool idle() const noexcept { return queued() == 0; }

 private:
  friend class StreamWorker;
  // Commands; few enough to stay in a core's cache until they run.
  static constexpr std::uint64_t kFullQueue = 2048;
  static constexpr std::uint64_t kLongQueue = 65536;
  [[nodiscard]] std::uint64_t least_full() const noexcept {
    return least_full_.load(std::memory_order_relaxed);
  }

  // Reads what has completed first: that had been pushed, but what completes in between might not
  // have been.
  [[nodiscard]] std::uint64_t queued() const noexcept {
    const std::uint64_t completed = progress_->completed();
    return queue_.pushed() - completed;
  }
  [[nodiscard]] bool try_own() noexcept {
    bool expected = false;
    return !owned_.load(std::memory_order_seq_cst) &&  // a sleeper's last look, too
           owned_.compare_exchange_strong(expected, true, std::memory_order_acq_rel);
  }
  [[nodiscard]] bool has_waiters() const noexcept {
    return waiters_.load(std::memory_order_seq_cst) != 0;
  }
  // How the owner of the queue runs it: to the end; until somebody waits for it; or only what can
  // be done soon.
  enum class Manner : std::uint8_t { steadily, until_wanted, opportunistic };
  // By the owner: runs commands up to `ticket`. Returns whether all were run.
  bool run_owned(std::uint64_t ticket, Manner manner);
  // Gives the queue to a waiter or the worker if there is work left, never to nobody.
  void disown();
  [[nodiscard]] bool wait_or_own(std::uint64_t ticket);
  void pass_on();
  // By the owner, after work has failed: lets the failure's report release this stream.
  void be_held() noexcept;
  void wait_for_room();
  [[noreturn]] static void refuse();
  void run_in_passing(std::uint64_t ticket);
  void run_at_hand(std::uint64_t ticket, const Deadline& deadline);

  Device& device_;
  std::uint64_t id_;
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  SpinLock lock_;
  CommandQueue queue_;
  alignas(64) std::atomic<bool> owned_{false};
  std::atomic<std::uint32_t> waiters_{0};   // threads that want to own the queue
  std::atomic<std::uint32_t> attended_{0};  // threads of the program that wait
  std::atomic<std::uint64_t> full_{kFullQueue};
  std::atomic<std::uint64_t> least_full_{kFullQueue};  // it has grown if full_ is more
  std::atomic<std::uint32_t> vain_{0};                 // how often not to try that again
  std::atomic<bool> closing_{false};                   // set with the lock held
  std::atomic<bool> runs_opportunistically_{
      false};  // the program has run its queue itself for room
  std::mutex farewells_mutex_;
  struct Farewell {
    std::weak_ptr<const void> owner;
    std::function<void()> action;
  };
  std::vector<Farewell> farewells_;  // under farewells_mutex_
  StreamWorker worker_;
};

}  // namespace hccl::device
