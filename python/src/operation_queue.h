// SPDX-License-Identifier: Apache-2.0
// The operations of a process group, in the order in which the program queues them.
#pragma once

#include "call.h"
#include "communicator.h"
#include "completer.h"
#include "unfinished_works.h"
#include "work.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace hccl_torch {

// Thread-safe.
class OperationQueue {
 public:
  explicit OperationQueue(std::shared_ptr<Communicator> communicator);
  // Aborts the group if operations have not ended, releases their tensors, and waits for running
  // callbacks. Blocks for at most a few seconds.
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  // Operations that the thread queues between these two are parts of one operation. The second
  // makes the calls of the library, as one group, and returns its work. The first discards a block
  // that this thread began and never ended. Both throw c10::DistBackendError.
  void start_coalescing();
  [[nodiscard]] c10::intrusive_ptr<Work> end_coalescing();
  // Returns whether this thread coalesces calls.
  [[nodiscard]] bool is_coalescing() const;
  // Returns the work of an operation that an Issue queues later. Its type is checked now: throws
  // c10::TypeError. Blocks until operations that use the memory of an HPU tensor have ended, and
  // those that come later find this one.
  [[nodiscard]] c10::intrusive_ptr<Work> defer(c10d::OpType type, const char* name,
                                               const at::Tensor& tensor);
  // Returns the work of a call that is part of `whole`'s operation, or of none if that is null; an
  // Issue queues it later.
  [[nodiscard]] c10::intrusive_ptr<Work> make_part(Work* whole, const char* name);
  // Waits for operations whose futures are awaited, and for callbacks that run, at most `timeout`.
  // Returns whether none is left.
  bool drain(std::chrono::milliseconds timeout = Completer::kDrainTimeout) {
    return completer_->drain(timeout);
  }
  // Blocks until the operations have ended, for receives that wait for their message at most
  // `timeout`. Returns whether they have.
  bool await_end(std::chrono::milliseconds timeout) { return unfinished_->await_end(timeout); }
  // Runs no further callbacks.
  void abandon_callbacks() { completer_->abandon(); }
  // Returns the number of the last operation.
  [[nodiscard]] std::uint64_t sequence() const;

 private:
  friend class Issue;

  // A call of the library.
  struct CoalescedCall {
    std::function<void()> make;
    std::optional<int> tag;  // of a message
  };

  // Puts the messages among the calls into the order of their tags.
  static void order_by_tag(std::vector<CoalescedCall>& calls);
  [[nodiscard]] c10::intrusive_ptr<Work> make_work(c10d::OpType type, const char* name);
  // With the lock held.
  [[nodiscard]] bool coalesces() const {
    return coalesced_ && coalescing_thread_ == std::this_thread::get_id();
  }
  // With the lock held, after all calls of the operation.
  void begin(const c10::intrusive_ptr<Work>& work);

  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<Completer> completer_ = std::make_shared<Completer>();
  const std::shared_ptr<UnfinishedWorks> unfinished_ = std::make_shared<UnfinishedWorks>();
  mutable std::mutex mutex_;  // held while an operation is queued
  std::uint64_t sequence_ = 0;
  c10::intrusive_ptr<Work> coalesced_;  // while a thread coalesces calls
  std::thread::id coalescing_thread_;
  std::vector<CoalescedCall> coalesced_calls_;  // to be made at the end
};

// One operation while it is queued. Holds the queue's lock, but for waits that say so. If it ends
// early, because a call has thrown, the tensors live until the calls before that have run.
class Issue {
 public:
  // On the stream of the collectives.
  Issue(OperationQueue& queue, c10d::OpType type, const char* name);
  // On a stream of messages, unless calls are being coalesced.
  Issue(OperationQueue& queue, c10d::OpType type, const char* name, const Stream& stream);
  // Issues an operation that was deferred.
  Issue(OperationQueue& queue, c10::intrusive_ptr<Work> work, const Stream& stream);
  ~Issue();
  Issue(const Issue&) = delete;
  Issue& operator=(const Issue&) = delete;

  [[nodiscard]] Operation& operation() { return work_->operation(); }
  [[nodiscard]] void* stream() const { return stream_.get(); }
  [[nodiscard]] bool is_coalesced() const { return is_coalesced_; }

  // Makes a call of the library, now or at the end of the coalesced calls. Throws
  // c10::DistBackendError.
  template <class Call>
  void call(const char* function, Call call) {
    has_called_ = true;
    if (is_coalesced_) {
      queue_.coalesced_calls_.push_back({[function, call] { check(call(), function); }, {}});
    } else {
      check(call(), function);
    }
  }
  // Says that the operation consists of messages. Call before input() and output().
  void consists_of_messages() { bounces_ = true; }
  // Make the calls of a message whose elements lie in one piece. Throw c10::DistBackendError.
  void send(const at::Tensor& from, int peer) { send(from, peer, 0); }
  void receive(const at::Tensor& to, int peer) { receive(to, peer, 0); }
  // The same for coalesced calls, where the messages of two ranks match in the order of their tags.
  void send(const at::Tensor& from, int peer, int tag);
  void receive(const at::Tensor& to, int peer, int tag);
  // Returns a CPU tensor with the elements of `tensor` in one piece, which lives as long as the
  // operation. Throws c10::TypeError for a tensor that is not dense, or neither in CPU memory nor
  // on the device; so does output().
  [[nodiscard]] at::Tensor input(const at::Tensor& tensor);
  // Returns a CPU tensor in one piece, whose elements are those of `tensor` once the operation has
  // ended. `keeps`: it has them from the start.
  [[nodiscard]] at::Tensor output(at::Tensor& tensor, bool keeps);
  // Blocks until earlier operations that write to the memory of `tensor` have ended: for elements
  // that are used at once.
  void await_writers(const at::Tensor& tensor);
  // Blocks until earlier collectives that write to the memory of `tensor` have ended: for a message
  // that is stored at once.
  void await_collectives(const at::Tensor& tensor) {
    await_writers_of(tensor, true, Access::changes);
  }
  // Returns `bytes` bytes that live as long as the operation.
  [[nodiscard]] at::Tensor scratch(std::int64_t bytes);
  // Makes tensors part of the result, which a step fills if they `are_written`. Throws
  // c10::TypeError as output() does.
  void promise(const std::vector<at::Tensor>& tensors, bool are_written);
  // Adds a step, which the first thread to notice the operation's end runs.
  void then(std::function<void()> step) { operation().steps.push_back(std::move(step)); }

  // Records that this tensor, the result of a deferred operation, has been filled.
  void fill(const at::Tensor& tensor) { count(tensor, bytes_out_); }
  // Ends a part of an operation, without counting it.
  void end_part();
  // Ends the operation after all its calls have been made, and returns its work. Counts it in the
  // statistics with the bytes of its inputs, including tensors that are also outputs, or with those
  // of the outputs if there are no inputs.
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> end();

 private:
  enum class Access { reads, overwrites, changes };

  [[nodiscard]] bool needs_copy(const at::Tensor& tensor) const;
  // Blocks until earlier operations that have to end before this one uses `tensor` have ended:
  // those that write to it in a step, or at all if this one `copies` it; for an HPU tensor, also
  // those of other streams. Returns true if it skipped some that are still running.
  bool order_behind_others(const at::Tensor& tensor, bool copies, Access access);
  bool await_writers_of(const at::Tensor& tensor, bool also_without_step, Access access);
  [[nodiscard]] bool must_end_first(const Work& writer, bool is_hpu, Access access) const;
  void await_users_of(const DeviceUse& use);
  // Ends these operations. Releases the queue's lock while it waits, because the awaited operations
  // may need it.
  void await(const std::vector<c10::intrusive_ptr<Work>>& works);
  // Returns a CPU tensor over the memory of `tensor`, which lives as long as the operation.
  [[nodiscard]] at::Tensor hold(const at::Tensor& tensor);
  [[nodiscard]] at::Tensor copy_of(const at::Tensor& tensor, bool with_elements);
  void count(const at::Tensor& tensor, std::uint64_t& bytes);
  void hand_over();
  // Discards the operation's steps because one of its calls has thrown.
  void abandon();

  OperationQueue& queue_;
  std::unique_lock<std::mutex> lock_;
  const c10::intrusive_ptr<Work> work_;
  const char* const name_;
  const Stream& stream_;
  const bool is_coalesced_;
  const bool is_message_;
  bool has_called_ = false;
  bool bounces_ = true;  // large tensors in ordinary memory go through a bounce buffer
  const bool is_deferred_ = false;
  const std::size_t steps_before_ = 0;  // number of steps of the other coalesced calls
  std::uint64_t after_;                 // position of the stream before the first call
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  bool is_zero_copy_ = true;
  bool has_ended_ = false;
};

// Copies into a tensor, which may be an inference tensor, on any thread.
void copy_into(at::Tensor& to, const at::Tensor& from);
// Copies into a tensor of the program after a check of its memory, which may have changed since the
// call. `call` names the function in the text. Throws c10::ValueError.
void deliver_into(at::Tensor& to, const at::Tensor& from, const char* call);

}  // namespace hccl_torch
