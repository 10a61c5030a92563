// SPDX-License-Identifier: Apache-2.0
// Queues the commands of a stream in order. Any number of producers may push commands if they hold
// the stream's lock; only one consumer at a time may run them. A running command may inspect the
// commands after it.
#pragma once

#include "device/progress.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace hccl::device {

class Stream;
class Lookahead;

// Work that orders or times other work and accesses no data. It runs even after a failure.
template <class Work>
struct Ordering {
  Work work;
  Outcome operator()() { return work(); }
};
template <class Work>
Ordering(Work) -> Ordering<Work>;
template <class Stored>
inline constexpr bool kIsOrdering = false;
template <class Work>
inline constexpr bool kIsOrdering<Ordering<Work>> = true;

// A callable stored in the queue itself. Only a callable that accepts a Lookahead& can run
// opportunistically. While a failure poisons the stream (Progress::poisons()), a command fails
// without running, unless its callable is an Ordering or accepts a Lookahead&.
class Command {
 public:
  static constexpr std::size_t kBytes = 176;

  template <class Stored, class... Arguments>
  void emplace(Arguments&&... arguments) {
    static_assert(sizeof(Stored) <= kBytes && alignof(Stored) <= alignof(std::max_align_t));
    // If a constructor threw after push() had appended a batch, the next push() would append
    // another batch and leave an empty batch in the queue.
    static_assert(std::is_nothrow_constructible_v<Stored, Arguments...>);
    new (storage_) Stored(std::forward<Arguments>(arguments)...);
    run_ = run_stored<Stored>;
  }

  [[nodiscard]] Outcome run(Lookahead& lookahead) noexcept { return run_(storage_, lookahead); }

  // Returns the callable if it is of type `Stored`, else null.
  template <class Stored>
  [[nodiscard]] const Stored* target() const noexcept {
    return run_ == run_stored<Stored>
               ? std::launder(static_cast<const Stored*>(static_cast<const void*>(storage_)))
               : nullptr;
  }

 private:
  template <class Stored>
  static Outcome run_stored(void* storage, Lookahead& lookahead) noexcept {
    auto* stored = std::launder(static_cast<Stored*>(storage));
    Outcome outcome = Outcome::would_block;
    if constexpr (std::is_invocable_v<Stored&, Lookahead&>) {
      outcome = (*stored)(lookahead);
    } else if (!kIsOrdering<Stored> && is_behind_failure(lookahead)) {
      outcome = Outcome::failed;
    } else if (is_patient(lookahead)) {
      outcome = (*stored)();
    }
    if (outcome != Outcome::would_block) stored->~Stored();
    return outcome;
  }
  [[nodiscard]] static bool is_patient(const Lookahead& lookahead) noexcept;
  [[nodiscard]] static bool is_behind_failure(const Lookahead& lookahead) noexcept;

  Outcome (*run_)(void*, Lookahead&) noexcept = nullptr;
  alignas(std::max_align_t) std::byte storage_[kBytes];
};

class CommandQueue {
 public:
  CommandQueue() : head_(new Batch), tail_(head_) {}
  ~CommandQueue() {
    while (head_ != nullptr) delete std::exchange(head_, head_->next);
    delete spare_.load();
  }
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  // Appends a command, which the consumer may run as soon as pushed() counts it. Returns the
  // command's ticket; tickets start at 1. Thread safety: one producer at a time.
  template <class Work, class... Arguments>
  std::uint64_t push(Arguments&&... arguments) {
    const std::uint64_t index = pushed_.load(std::memory_order_relaxed);
    if (index % kBatch == 0 && index != 0) {
      Batch* batch = spare_.exchange(nullptr, std::memory_order_acquire);
      if (batch == nullptr) batch = new Batch;
      batch->next = nullptr;
      tail_->next = batch;
      tail_ = batch;
    }
    tail_->commands[index % kBatch].template emplace<Work>(std::forward<Arguments>(arguments)...);
    pushed_.store(index + 1, std::memory_order_seq_cst);
    return index + 1;
  }
  [[nodiscard]] std::uint64_t pushed() const noexcept {
    return pushed_.load(std::memory_order_seq_cst);
  }

  // Runs the next command, which must have been pushed. If `opportunistic`, the command may return
  // Outcome::would_block and then stays in the queue. `behind_failure`: whether earlier work has
  // poisoned the stream (Progress::poisons()). Called by the consumer, the thread that owns the
  // queue of `stream`.
  [[nodiscard]] Outcome run_next(const Stream& stream, bool opportunistic,
                                 bool behind_failure) noexcept;

 private:
  friend class Lookahead;
  static constexpr std::uint64_t kBatch = 256;
  struct Batch {
    std::array<Command, kBatch> commands;
    Batch* next = nullptr;
  };

  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  Batch* head_;                      // owned by the consumer
  std::uint64_t head_end_ = kBatch;  // owned by the consumer: index of the end of head_
  std::uint64_t taken_ = 0;          // owned by the consumer
  alignas(64) Batch* tail_;          // owned by the producers
  std::atomic<Batch*> spare_{nullptr};
};

// A running command's view of its stream: for example, whether earlier work has poisoned the
// stream, how long the command may wait, and which commands follow.
class Lookahead {
 public:
  Lookahead(const CommandQueue& queue, const Stream& stream, bool opportunistic,
            bool behind_failure) noexcept
      : queue_(queue),
        stream_(stream),
        opportunistic_(opportunistic),
        behind_failure_(behind_failure),
        batch_(queue.head_),
        position_(queue.taken_ + 1) {}

  // Returns whether earlier work has poisoned the stream (Progress::poisons()). If so, the data of
  // the command may be wrong, and the command must fail as well.
  [[nodiscard]] bool behind_failure() const noexcept { return behind_failure_; }
  // Returns the earlier failure that makes this command fail.
  [[nodiscard]] FailureNote failure() const;
  // Return the stream's id and this command's ticket.
  [[nodiscard]] std::uint64_t stream_id() const noexcept;
  [[nodiscard]] std::uint64_t ticket() const noexcept { return queue_.taken_ + 1; }

  // Returns whether a host thread is blocked on the stream, and therefore queues nothing else.
  [[nodiscard]] bool host_is_waiting() const noexcept;

  // Returns how long the command may wait. If the budget is limited, the command runs
  // opportunistically, on a thread that may be needed elsewhere: the command does the work that
  // fits the budget, and returns Outcome::would_block if work is left.
  [[nodiscard]] WaitBudget wait_budget() const noexcept;

  // Returns whether later commands may begin while this command is blocked. This is safe if nothing
  // else can use the device's memory: the program waits for this stream, and no other stream has
  // work. Evaluated only on the first call.
  [[nodiscard]] bool may_begin() noexcept;

  // Advances to the next command and returns its callable, or null if the callable is not of type
  // `Work`. Returns null if there is no next command.
  template <class Work>
  [[nodiscard]] const Work* next() noexcept {
    if (position_ >= queue_.pushed()) return nullptr;
    if (position_ % CommandQueue::kBatch == 0) batch_ = batch_->next;
    return batch_->commands[position_++ % CommandQueue::kBatch].target<Work>();
  }
  // Skips the next `commands` commands, which an earlier command has obtained from next().
  void skip(std::size_t commands) noexcept {
    for (; commands != 0; --commands) {
      if (position_++ % CommandQueue::kBatch == 0) batch_ = batch_->next;
    }
  }

 private:
  const CommandQueue& queue_;
  const Stream& stream_;
  const bool opportunistic_;
  const bool behind_failure_;
  std::optional<bool> may_begin_;
  const CommandQueue::Batch* batch_;
  std::uint64_t position_;
};

inline bool Command::is_patient(const Lookahead& lookahead) noexcept {
  return lookahead.wait_budget() == WaitBudget::unlimited;
}

inline bool Command::is_behind_failure(const Lookahead& lookahead) noexcept {
  return lookahead.behind_failure();
}

inline Outcome CommandQueue::run_next(const Stream& stream, bool opportunistic,
                                      bool behind_failure) noexcept {
  if (taken_ == head_end_) {
    Batch* done = std::exchange(head_, head_->next);
    head_end_ += kBatch;
    delete spare_.exchange(done, std::memory_order_release);
  }
  Lookahead lookahead(*this, stream, opportunistic, behind_failure);
  const Outcome outcome = head_->commands[taken_ % kBatch].run(lookahead);
  if (outcome != Outcome::would_block) ++taken_;
  return outcome;
}

}  // namespace hccl::device
