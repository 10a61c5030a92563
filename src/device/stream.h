// SPDX-License-Identifier: Apache-2.0
// A stream runs its work in order. A thread that synchronises with the stream runs the queue
// itself; if no thread waits, a worker thread runs the queue.
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

  // Starts the worker. The first call of enqueue() does so too; a caller that must not fail then
  // calls this function before. Throws Error(hcclSystemError) if the worker cannot be started.
  void start_worker() { worker_.start_once(); }
  // Queues work (a callable that returns an Outcome and does not throw) and returns its ticket. If
  // the stream was used in the last 10 ms, makes no system call to wake the worker. Blocks while
  // the queue is full, as long as the queue makes progress. Throws as require_open() does, and
  // Error(hcclSystemError) if the worker cannot be started.
  template <class Work>
  std::uint64_t enqueue(Work&& work) {
    make_room();
    return emplace_at_once<std::decay_t<Work>>(std::forward<Work>(work));
  }
  // Blocks while the queue is full, as long as the queue makes progress.
  void make_room() {
    if (queued() >= full_.load(std::memory_order_relaxed)) [[unlikely]]
      wait_for_room();
  }
  // Queues work like enqueue(), for a caller that has called make_room() and must not block now.
  // Constructs the work in place.
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
  // Appends work even while the stream is closing. Does nothing if all queued work has already run.
  template <class Work, class... Arguments>
  void emplace_behind(Arguments&&... arguments) {
    {
      const std::lock_guard lock(lock_);
      if (queued() == 0) return;
      queue_.push<Work>(std::forward<Arguments>(arguments)...);
    }
    if (worker_.is_asleep()) worker_.ring();
  }
  // Throws SynError(synInvalidArgument) if close() has been called.
  void require_open() const {
    if (closing_.load(std::memory_order_relaxed)) [[unlikely]]
      refuse();
  }

  // Blocks until the work up to `ticket` has run. Runs the work on this thread, unless another
  // thread is running it. If `by_program`, host_is_waiting() returns true during this call.
  void run_until(std::uint64_t ticket, bool by_program = true);
  // Waits until the work up to `ticket` has run or the deadline has passed. First, this thread runs
  // work that does not block, unless another thread is running the queue. Returns whether all of
  // the work has run.
  [[nodiscard]] bool wait_until(std::uint64_t ticket, const Deadline& deadline);
  // Returns whether a thread of the program waits for this stream and therefore makes no other
  // calls.
  [[nodiscard]] bool host_is_waiting() const noexcept {
    return waiting_host_threads_.load(std::memory_order_relaxed) != 0;
  }
  // Lets the queue grow to kLongQueue commands before it counts as full. Call it for ranks that
  // share cores, which gain more from starting calls early than from keeping the queue in the
  // cache.
  void keep_long_queue() noexcept {
    least_full_.store(kLongQueue, std::memory_order_relaxed);
    full_.store(kLongQueue, std::memory_order_relaxed);
  }

  // Blocks until everything queued so far has run, and returns the outcome. A failure is reported
  // only once. If `reason` is not null, stores the reason for a failure there.
  [[nodiscard]] Outcome synchronize(std::string* reason = nullptr);
  // Returns whether everything queued so far is complete. If it is, stores the outcome and, if
  // `reason` is not null, the reason for a failure.
  [[nodiscard]] bool query(Outcome* outcome, std::string* reason = nullptr);
  // If no thread runs the queue, ends the worker's long nap (StreamWorker::hurry()).
  void hurry();

  [[nodiscard]] Capture capture();
  // Makes work that is queued from now on wait for the captured work. If the captured work fails,
  // this stream takes over the failure (Progress::take_over_failure()).
  void follow(Capture capture);
  // Blocks until the captured work is complete. Runs the captured stream's work on this thread,
  // unless another thread is running it.
  static void wait_for(const Capture& capture);

  // Call when a failure that poisoned the stream has been reported to the program. The failure does
  // not suppress work queued from now on.
  void release(const WorkFailure& failure) noexcept;

  // Registers an action to run when the stream is destroyed, after its last work. The action runs
  // only if `owner` still exists.
  void at_destruction(std::weak_ptr<const void> owner, std::function<void()> action);
  // Refuses further work, except that of emplace_behind(); runs all queued work, then runs the
  // actions of at_destruction(). Blocks.
  void close();

  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }
  [[nodiscard]] const std::shared_ptr<Progress>& progress() const noexcept { return progress_; }
  [[nodiscard]] std::uint64_t pushed() const noexcept { return queue_.pushed(); }
  // Returns whether a producer that is making room may stop: the queue is less than three quarters
  // full.
  [[nodiscard]] bool has_room() const noexcept { return queued() < least_full() / 4 * 3; }
  [[nodiscard]] bool idle() const noexcept { return queued() == 0; }

 private:
  friend class StreamWorker;
  // The lengths at which a queue is full, in commands. With kFullQueue, commands stay in a core's
  // cache until they run.
  static constexpr std::uint64_t kFullQueue = 2048;
  static constexpr std::uint64_t kLongQueue = 65536;
  [[nodiscard]] std::uint64_t least_full() const noexcept {
    return least_full_.load(std::memory_order_relaxed);
  }

  // Reads completed() before pushed(). In the opposite order, commands that are pushed and
  // completed in between would make the difference negative.
  [[nodiscard]] std::uint64_t queued() const noexcept {
    const std::uint64_t completed = progress_->completed();
    return queue_.pushed() - completed;
  }
  // Takes ownership if there is no owner. seq_cst: a waiter counts itself in waiters_ before this
  // load, and disown() stores owned_ before it loads waiters_. At least one of the two threads
  // therefore sees the other's store.
  [[nodiscard]] bool try_own() noexcept {
    bool expected = false;
    return !owned_.load(std::memory_order_seq_cst) &&
           owned_.compare_exchange_strong(expected, true, std::memory_order_acq_rel);
  }
  [[nodiscard]] bool has_waiters() const noexcept {
    return waiters_.load(std::memory_order_seq_cst) != 0;
  }
  // How the owner runs the queue: to the end, until another thread wants to own the queue, or only
  // commands that do not block.
  enum class Manner : std::uint8_t { steadily, until_wanted, opportunistic };
  // Runs commands up to `ticket`. Returns whether all of them have run. Called by the owner.
  bool run_owned(std::uint64_t ticket, Manner manner);
  // Gives up ownership. If work is left, a waiter or the worker becomes the owner.
  void disown();
  [[nodiscard]] bool wait_or_own(std::uint64_t ticket);
  void pass_on();
  // Registers this stream with the failure that has just poisoned it, so that the stream is
  // released when the failure is reported. Called by the owner.
  void hold_behind_failure() noexcept;
  void wait_for_room();
  [[noreturn]] static void refuse();
  void run_opportunistically(std::uint64_t ticket);
  void try_to_run(std::uint64_t ticket, const Deadline& deadline);

  Device& device_;
  std::uint64_t id_;
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  SpinLock lock_;
  CommandQueue queue_;
  alignas(64) std::atomic<bool> owned_{false};
  std::atomic<std::uint32_t> waiters_{0};               // threads that want to own the queue
  std::atomic<std::uint32_t> waiting_host_threads_{0};  // waiting threads of the program
  std::atomic<std::uint64_t> full_{kFullQueue};
  std::atomic<std::uint64_t> least_full_{kFullQueue};  // full_ is larger if the queue has grown
  std::atomic<std::uint32_t> skipped_attempts_{0};     // opportunistic runs to skip
  std::atomic<bool> closing_{false};                   // written with the lock held
  // Makes the worker skip one turn. Set when a producer has made room by running the queue.
  std::atomic<bool> runs_opportunistically_{false};
  std::mutex destroy_callbacks_mutex_;
  struct DestroyCallback {
    std::weak_ptr<const void> owner;
    std::function<void()> action;
  };
  std::vector<DestroyCallback> destroy_callbacks_;  // guarded by destroy_callbacks_mutex_
  StreamWorker worker_;
};

}  // namespace hccl::device
