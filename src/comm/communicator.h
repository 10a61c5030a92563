// SPDX-License-Identifier: Apache-2.0
// One rank's membership in a communicator. The communicator queues calls on streams in program
// order, and its back end runs them.
#pragma once

#include "base/error.h"
#include "base/handle_table.h"
#include "base/scope_exit.h"
#include "base/waiter.h"
#include "bootstrap/process_watch.h"
#include "call/backend.h"
#include "comm/operation_log.h"
#include "comm/self_messages.h"
#include "device/arena_buffer.h"
#include "device/command_queue.h"
#include "device/device.h"

#include <hccl_types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace hccl::comm {

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // The object must be owned by a shared_ptr. `backend` is already connected to the other ranks.
  Communicator(const hcclUniqueId& id, int size, int rank, std::shared_ptr<device::Device> device,
               std::unique_ptr<Backend> backend, std::unique_ptr<OperationLog> log);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Throws the recorded fault if the communicator has failed, Error(hcclInvalidArgument) if the
  // stream belongs to another device, or SynError if the stream has been destroyed.
  void check_usable(const device::Stream& stream) const;

  // Queue a validated call, the parts of one call, or the messages of a group. Parts that are
  // collectives run one after another; sends and receives run concurrently. These functions do not
  // block, because the caller has waited for room in the stream's queue. They throw what
  // check_usable(), prepare() and pair_self_messages() throw. Queued work does not keep the
  // communicator alive: see leave().
  void enqueue(device::Stream& stream, const CollectiveCall& call);
  void enqueue(device::Stream& stream, const PointToPoint& call) {
    prepare(stream, call);
    enqueue(stream, MessageList(call));
  }
  void enqueue(device::Stream& stream, const std::vector<CollectiveCall>& parts);
  void enqueue(device::Stream& stream, const std::vector<PointToPoint>& parts);
  void enqueue(device::Stream& stream, MessageList&& calls);

  // These functions queue the calls of a group in steps. prepare() is called when the group keeps a
  // call: it allocates the staging buffer if the call needs one, and throws Error(hcclOutOfMemory)
  // if there is too little device memory. Collectives are then queued by enqueue(), and messages by
  // the other two functions. number() assigns a send or receive its number among the calls in the
  // same direction with the same peer; call it in program order. enqueue_numbered() queues the
  // messages of a stream, and `copies`, which replace the messages that the rank sends to itself.
  template <class Call>
  void prepare(device::Stream& stream, const Call& call) {
    if (is_staged(call)) make_staging(stream);
  }
  // begin_use() performs the steps of number() that may fail.
  void begin_use(device::Stream& stream);
  void number(device::Stream& stream, PointToPoint& call);
  void enqueue_numbered(device::Stream& stream, MessageList&& calls,
                        std::vector<SelfCopy>&& copies);

  // Returns whether this communicator has queued or prepared calls on the stream.
  [[nodiscard]] bool has_called_on(const device::Stream& stream);

  // Returns whether this communicator precedes `other` in an order that is the same on all ranks.
  // The two must have different ids.
  [[nodiscard]] bool comes_before(const Communicator& other) const;

  // Returns a message that another rank offers and for which no receive is queued. Checks the ranks
  // round robin. Blocks until there is one; returns nothing once `timeout` has passed. If `timeout`
  // is zero, does not block. Throws the recorded fault if the communicator has failed. Thread
  // safety: any thread.
  [[nodiscard]] std::optional<Offer> probe(std::chrono::milliseconds timeout);

  // Blocks until all work that is queued on this communicator has run, or the communicator has
  // failed.
  void finalize();
  // Ends this rank's membership. Afterwards the owner may release the communicator: it stays alive
  // until its queued work has run.
  void leave();
  // Fails all queued and future work of the communicator on all ranks; does nothing if it has only
  // one rank. `why`, such as "called hcclCommAbort", follows this rank's name in the text of the
  // fault. Works even if no memory is left.
  void fail(const char* why) noexcept { backend_->fail(hcclSystemError, why); }
  // Fails the communicator when `process` exits. `peer` is the local rank (on this node) of that
  // process.
  void watch(FileDescriptor process, int peer);

  // Limits how long this rank waits for other ranks; 0 means no limit. Thread safety: any thread.
  void set_wait_limit(std::uint64_t milliseconds) { backend_->set_wait_limit(milliseconds); }

  // Throws the recorded fault if the communicator has failed.
  void throw_if_failed() const { backend_->throw_if_failed(); }
  [[nodiscard]] bool failed() const { return backend_->failed(); }
  // Returns the fault's code. Without a fault, returns the code that states why calls cannot
  // proceed at present, or hcclSuccess if they can.
  [[nodiscard]] hcclResult_t async_error() const { return backend_->async_error().code; }
  // Returns the text for the code that async_error() returns, or null for hcclSuccess. The text
  // lives as long as the communicator.
  [[nodiscard]] const char* async_error_text();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] device::Device& device() const { return *device_; }
  // Returns the traffic with rank `peer`, or with all other ranks if `peer` is empty. Throws
  // Error(hcclInvalidArgument) if `peer` is not another rank.
  [[nodiscard]] TrafficReport traffic(std::optional<int> peer) const;
  // Returns a description of how this rank would run a call: see plan_text().
  [[nodiscard]] std::string plan_of(const PlanRequest& request) const;
  // Return the path of a call and the reason for it.
  [[nodiscard]] CallPath path_of(const CollectiveCall& call) const {
    return backend_->path_of(call);
  }
  [[nodiscard]] CallPath path_of(const PointToPoint& call) const {
    return call.peer == rank_ ? CallPath{"copy", "a rank sends to itself"}
                              : backend_->path_of(call);
  }
  [[nodiscard]] OperationLog& operation_log() const { return *operation_log_; }

  // Runs `work`, which returns whether it is complete; if not, returns would_block. Does not run
  // `work` if earlier work on the stream has failed. After that failure, or an exception of `work`,
  // returns collective_failed, and the communicator fails unless it has only one rank. call_text()
  // describes the call.
  template <class CallText, class Work>
  [[nodiscard]] device::Outcome run_reporting_faults(const device::Lookahead& lookahead,
                                                     CallText call_text, Work work) noexcept {
    try {
      if (lookahead.behind_failure()) [[unlikely]]
        throw_behind_failure(lookahead, call_text());
      return work() ? device::Outcome::success : device::Outcome::would_block;
    } catch (const Error& error) {
      note_fault(error.code(), error.what());
    } catch (const std::exception& error) {
      note_fault(hcclInternalError, error.what());
    }
    return device::Outcome::collective_failed;
  }

 private:
  // A stream on which this communicator has queued or prepared calls.
  struct UsedStream {
    std::weak_ptr<device::Stream> stream;
    std::uint64_t id = 0;
    BackendStream* backend = nullptr;
    MessagePlace place{};                          // for messages that are queued now
    std::uint64_t last_ticket = 0;                 // of the last call
    bool is_outlived = false;                      // outlive_calls() has handled the stream
    std::unique_ptr<device::ArenaBuffer> staging;  // null until a call needs it
  };

  // Returns a guard that fails the communicator unless it is dismissed. Hold it while a call has a
  // number or a stream has an ordinal, but the call is not queued: other ranks rely on both, so
  // this rank could never catch up.
  [[nodiscard]] auto fail_unless_queued() noexcept {
    return ScopeExit([this]() noexcept {
      fail(
          "could not queue a call for which other ranks may wait; look at its output, and create "
          "the communicator again");
    });
  }
  // Call used_stream(), enqueue_on(), staging_of() and outlive_calls_of() with streams_lock_ held.
  UsedStream& used_stream(device::Stream& stream);
  void enqueue_on(UsedStream& on, device::Stream& stream, MessageList&& calls,
                  std::vector<SelfCopy>&& copies);
  // Returns the address of the stream's staging buffer, which is allocated at the first use.
  // Returns 0 if the buffer is not `needed`. Throws Error(hcclOutOfMemory).
  [[nodiscard]] std::uint64_t staging_of(UsedStream& on, bool needed) const;
  void free_staging(UsedStream& used) const noexcept;
  // Keeps the communicator alive until all its calls on the stream have run.
  void outlive_calls_of(device::Stream& stream);

  [[noreturn]] static void throw_behind_failure(const device::Lookahead& lookahead,
                                                const std::string& call);
  [[nodiscard]] bool is_staged(const CollectiveCall& call) const;
  [[nodiscard]] bool is_staged(const PointToPoint& call) const;
  void make_staging(device::Stream& stream);
  void outlive_calls();
  void note_fault(hcclResult_t code, const char* what);
  // Log calls that are about to be queued. If another thread queues work on the stream at the same
  // time, the logged tickets may be wrong.
  void log_queued(const device::Stream& stream, const CollectiveCall& call);
  void log_queued(const device::Stream& stream, std::span<const PointToPoint> calls);
  void forget_stream(std::uint64_t id);

  const hcclUniqueId id_;
  const int size_;
  const int rank_;
  const std::shared_ptr<device::Device> device_;
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<OperationLog> operation_log_;
  SpinLock streams_lock_;
  std::vector<std::unique_ptr<UsedStream>> streams_;
  std::uint32_t next_ordinal_ = 0;     // of the next stream with collectives
  std::atomic<int> first_probed_ = 0;  // where the next probe() begins
  bool has_left_ = false;              // leave() was called; an open group may still queue calls
  std::shared_ptr<Communicator> own_keeper_;  // this object, if outlive_calls_of() has failed
  std::mutex error_texts_mutex_;
  std::set<std::string> error_texts_;             // the texts that async_error_text() has returned
  std::vector<bootstrap::ProcessWatch> watches_;  // destroyed first: callbacks use other members
};

// Returns the table of communicators by handle (hcclComm_t).
[[nodiscard]] HandleTable<Communicator>& communicators();

}  // namespace hccl::comm
