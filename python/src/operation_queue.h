// SPDX-License-Identifier: Apache-2.0
// The operations of a process group, in program order.
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
  // Aborts the group if any operations have not run. Waits for these operations, then for running
  // callbacks, for a few seconds each. In a forked child, does nothing.
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  // Coalesces into one operation all operations that this thread queues between these two calls.
  // end_coalescing() makes their library calls as one group, and returns the Work of the coalesced
  // operation. start_coalescing() discards a coalescing block that this thread began but did not
  // end. Both functions throw c10::DistBackendError.
  void start_coalescing();
  [[nodiscard]] c10::intrusive_ptr<Work> end_coalescing();
  // Returns whether this thread is coalescing calls.
  [[nodiscard]] bool is_coalescing() const;
  // Returns the Work of an operation that an Issue will queue later. Checks the tensor now: throws
  // c10::TypeError, c10::ValueError and, in a forked child, c10::DistBackendError. For an HPU
  // tensor, blocks until operations that use the tensor's memory have ended, and makes later
  // operations on this memory wait for the deferred one. A receive does not wait for earlier
  // receives.
  [[nodiscard]] c10::intrusive_ptr<Work> defer(c10d::OpType type, const char* name,
                                               const at::Tensor& tensor);
  // Returns the Work of a call that an Issue will queue later. The call is part of `whole`'s
  // operation; if `whole` is null, it is part of none.
  [[nodiscard]] c10::intrusive_ptr<Work> make_part(Work* whole, const char* name);
  // Blocks until every operation with a requested future has ended and no callback is running, but
  // for at most `timeout`. Returns false on a time-out.
  bool drain(std::chrono::milliseconds timeout = Completer::kDrainTimeout) {
    return completer_->drain(timeout);
  }
  // Blocks until the operations have ended. Waits at most `timeout` for operations that consist
  // only of receives. Returns whether all have ended.
  bool await_end(std::chrono::milliseconds timeout) { return unfinished_->await_end(timeout); }
  // Prevents further callbacks; see Completer::abandon().
  void abandon_callbacks() { completer_->abandon(); }
  // Returns the sequence number of the last operation.
  [[nodiscard]] std::uint64_t sequence() const;

 private:
  friend class Issue;

  // A library call that end_coalescing() makes.
  struct CoalescedCall {
    std::function<void()> make;
    std::optional<int> tag;  // set if the call is a message
  };

  // Sorts the messages among the calls by tag.
  static void order_by_tag(std::vector<CoalescedCall>& calls);
  [[nodiscard]] c10::intrusive_ptr<Work> make_work(c10d::OpType type, const char* name);
  // Call with the lock held.
  [[nodiscard]] bool coalesces() const {
    return coalesced_ && coalescing_thread_ == std::this_thread::get_id();
  }
  // Begins an operation and stores its Work. Call it with the lock held, after all of the
  // operation's calls.
  void begin(const c10::intrusive_ptr<Work>& work);

  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<Completer> completer_ = std::make_shared<Completer>();
  const std::shared_ptr<UnfinishedWorks> unfinished_ = std::make_shared<UnfinishedWorks>();
  mutable std::mutex mutex_;  // held while an operation is being queued
  std::uint64_t sequence_ = 0;
  c10::intrusive_ptr<Work> coalesced_;  // null unless a thread is coalescing calls
  std::thread::id coalescing_thread_;
  std::vector<CoalescedCall> coalesced_calls_;  // made by end_coalescing()
};

// An operation that is being queued. Holds the queue's lock, except while it waits for other
// operations. If a call throws before end(), the tensors are kept alive until the earlier calls
// have run.
class Issue {
 public:
  // Issues an operation on the stream for collectives. In a coalescing block, the operation becomes
  // part of the coalesced operation.
  Issue(OperationQueue& queue, c10d::OpType type, const char* name);
  // Does the same on a stream for messages. A coalescing block uses the stream for collectives
  // instead.
  Issue(OperationQueue& queue, c10d::OpType type, const char* name, const Stream& stream);
  // Issues the deferred operation `work`.
  Issue(OperationQueue& queue, c10::intrusive_ptr<Work> work, const Stream& stream);
  ~Issue();
  Issue(const Issue&) = delete;
  Issue& operator=(const Issue&) = delete;

  [[nodiscard]] Operation& operation() { return work_->operation(); }
  [[nodiscard]] void* stream() const { return stream_.get(); }
  [[nodiscard]] bool is_coalesced() const { return is_coalesced_; }

  // Makes a library call, or stores the call for end_coalescing(). Throws c10::DistBackendError.
  template <class Call>
  void call(const char* function, Call call) {
    has_called_ = true;
    if (is_coalesced_) {
      queue_.coalesced_calls_.push_back({[function, call] { check(call(), function); }, {}});
    } else if (call() != hcclSuccess) {
      work_->throw_failed();
    }
  }
  // Declares that the operation consists of messages, so that input() and output(), which must
  // follow, check the memory of large tensors.
  void consists_of_messages() { has_messages_ = true; }
  // Send or receive the bytes of a contiguous tensor as one message. Throw c10::DistBackendError.
  void send(const at::Tensor& from, int peer) { send(from, peer, 0); }
  void receive(const at::Tensor& to, int peer) { receive(to, peer, 0); }
  // Do the same with a tag. In a coalescing block, the messages between two ranks match in the
  // order of their tags. Outside a block, the tag has no effect.
  void send(const at::Tensor& from, int peer, int tag);
  void receive(const at::Tensor& to, int peer, int tag);
  // Returns a contiguous CPU tensor with the elements of `tensor`. The result lives until the
  // operation has ended. input() and output() throw c10::TypeError unless `tensor` is a dense CPU
  // or HPU tensor, and c10::ValueError if they find its memory inaccessible.
  [[nodiscard]] at::Tensor input(const at::Tensor& tensor);
  // Returns a contiguous CPU tensor for the operation to write to. Once the operation has ended,
  // `tensor` has the same elements. If `keeps`, the result initially has the elements of `tensor`.
  [[nodiscard]] at::Tensor output(at::Tensor& tensor, bool keeps);
  // Blocks until earlier operations that write to the memory of `tensor` have ended. Call it before
  // this thread reads the elements. Throws c10::ValueError if the memory is not readable.
  void await_writers(const at::Tensor& tensor);
  // Blocks until earlier collectives that write to the memory of `tensor` have ended. Call it
  // before this thread stores a message there.
  void await_collectives(const at::Tensor& tensor) {
    await_writers_of(tensor, true, Access::changes);
  }
  // Returns a buffer of `bytes` bytes, which lives until the operation has ended.
  [[nodiscard]] at::Tensor scratch(std::int64_t bytes);
  // Adds tensors to the operation's result. `are_written`: whether a step writes to them. Throws
  // c10::TypeError and c10::ValueError, as output() does.
  void promise(const std::vector<at::Tensor>& tensors, bool are_written);
  // Adds a step. The first thread that notices that the operation has run executes the step.
  void then(std::function<void()> step) { operation().steps.push_back(std::move(step)); }

  // Adds the bytes of `tensor`, which a deferred receive has filled, to the statistics.
  void fill(const at::Tensor& tensor) { count(tensor, bytes_out_); }
  // Begins a part of another operation. The statistics do not count the part.
  void end_part();
  // Begins the operation, whose calls have all been made, and returns its Work. The statistics
  // count the bytes of its inputs (including tensors that are also outputs), or of its outputs if
  // it has no inputs.
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> end();

 private:
  enum class Access { reads, overwrites, changes };

  [[nodiscard]] static bool needs_copy(const at::Tensor& tensor);
  [[nodiscard]] bool must_check(const at::Tensor& tensor) const;
  // Blocks until earlier operations that write to `tensor` in a step have ended. If this operation
  // `copies` the tensor, waits for all earlier operations that write to it. For an HPU tensor, also
  // waits for conflicting operations on other streams. Skips the writers for which must_end_first()
  // is false, and returns whether it has skipped any.
  bool order_behind_others(const at::Tensor& tensor, bool copies, Access access);
  bool await_writers_of(const at::Tensor& tensor, bool also_without_step, Access access);
  [[nodiscard]] bool must_end_first(const Work& writer, bool is_hpu, Access access) const;
  void await_users_of(const DeviceUse& use);
  // Blocks until these operations have ended. Releases the queue's lock during the wait, because
  // their steps may need it.
  void await(const std::vector<c10::intrusive_ptr<Work>>& works);
  // Returns a CPU tensor over the memory of `tensor`, which is kept alive until the operation has
  // ended.
  [[nodiscard]] at::Tensor hold(const at::Tensor& tensor);
  [[nodiscard]] at::Tensor copy_of(const at::Tensor& tensor, bool with_elements);
  void count(const at::Tensor& tensor, std::uint64_t& bytes);
  void hand_over();
  // Discards the steps that this call has added. If the operation is not deferred, begins it with
  // the calls made so far, so that their tensors stay alive. Called if a call has thrown.
  void abandon();

  OperationQueue& queue_;
  std::unique_lock<std::mutex> lock_;
  const c10::intrusive_ptr<Work> work_;
  const char* const name_;
  const Stream& stream_;
  const bool is_coalesced_;
  const bool is_message_;
  bool has_called_ = false;
  bool has_messages_ = true;
  const bool is_deferred_ = false;
  const std::size_t steps_before_ = 0;  // number of steps of earlier coalesced calls
  std::uint64_t after_;                 // stream position before the first call
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  bool is_zero_copy_ = true;
  bool has_ended_ = false;
};

// Copies elements to a tensor, which may be an inference tensor. Thread safety: any thread.
void copy_into(at::Tensor& to, const at::Tensor& from);
// Copies elements to a tensor of the program. Throws c10::ValueError if the memory is no longer
// writable. `call` is the function name in the error text.
void deliver_into(at::Tensor& to, const at::Tensor& from, const char* call);

}  // namespace hccl_torch
