// SPDX-License-Identifier: Apache-2.0
// A rank's membership in a communicator. The communicator queues calls on streams in an order on
// which all ranks agree, and its back end runs them.
#pragma once

#include "base/error.h"
#include "base/handle_table.h"
#include "base/waiter.h"
#include "bootstrap/process_watch.h"
#include "call/backend.h"
#include "comm/operation_log.h"
#include "comm/self_messages.h"
#include "comm/staging_buffer.h"
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
  // The object must be owned by a shared_ptr. `backend` has already joined the other ranks.
  Communicator(const hcclUniqueId& id, int size, int rank, std::shared_ptr<device::Device> device,
               std::unique_ptr<Backend> backend, std::unique_ptr<OperationLog> log);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Throws the communicator's fault if it has one, Error(hcclInvalidArgument) if the stream belongs
  // to another device, or SynError if the stream has been destroyed.
  void check_usable(const device::Stream& stream) const;

  // Queue a validated call, the parts of one call (collectives one after the other, sends and
  // receives concurrently), or the messages of a group. Do not block, because the caller has waited
  // for room in the stream's queue. Throw the communicator's fault if it has one. Queued work does
  // not keep the communicator alive: see leave().
  void enqueue(device::Stream& stream, const CollectiveCall& call);
  void enqueue(device::Stream& stream, const PointToPoint& call) {
    prepare(stream, call);
    enqueue(stream, MessageList(call));
  }
  void enqueue(device::Stream& stream, const std::vector<CollectiveCall>& parts);
  void enqueue(device::Stream& stream, const std::vector<PointToPoint>& parts);
  void enqueue(device::Stream& stream, MessageList&& calls);

  // Queue the calls of a group in three steps. prepare() allocates the staging buffer for a call
  // that the group keeps, and fails if there is no device memory for it. number() gives a send or
  // receive its number among the calls in the same direction with the same peer; call it in program
  // order. enqueue_numbered() queues a stream's messages, and copies for those to the rank itself.
  template <class Call>
  void prepare(device::Stream& stream, const Call& call) {
    if (is_staged(call)) make_staging(stream);
  }
  void number(device::Stream& stream, PointToPoint& call);
  void enqueue_numbered(device::Stream& stream, MessageList&& calls,
                        std::vector<SelfCopy>&& copies);

  // Returns whether this communicator has queued calls on the stream.
  [[nodiscard]] bool has_called_on(const device::Stream& stream);

  // Returns whether this communicator precedes `other`. All ranks agree on this order if the two
  // ids differ.
  [[nodiscard]] bool comes_before(const Communicator& other) const;

  // Searches the ranks round robin for a message that another rank has offered and for which no
  // receive is queued, and returns that message. Blocks until there is one or `timeout` has passed,
  // in which case it returns nothing; does not block if `timeout` is zero. Throws the
  // communicator's fault. Thread safety: any thread.
  [[nodiscard]] std::optional<Offer> probe(std::chrono::milliseconds timeout);

  // Blocks until all work queued on this communicator has run, or the communicator has failed.
  void finalize();
  // Ends this rank's membership. The owner may then release the communicator, which stays alive
  // until its queued work has run.
  void leave();
  // Fails all queued and future work of the communicator on every rank. `why` is the reason, such
  // as "called hcclCommAbort". Allocates no memory.
  void fail(const char* why) noexcept { backend_->fail(hcclSystemError, why); }
  // Fails the communicator when the process of rank `peer` of this node exits.
  void watch(const FileDescriptor& process, int peer);

  // Sets the time-out of this rank's waits for other ranks; 0 means none. Thread safety: any
  // thread.
  void set_wait_limit(std::uint64_t milliseconds) { backend_->set_wait_limit(milliseconds); }

  // Throws the communicator's fault if it has one.
  void throw_if_failed() const { backend_->throw_if_failed(); }
  [[nodiscard]] bool failed() const { return backend_->failed(); }
  // Returns the code of the fault, or else of the reason why calls cannot proceed at present, or
  // hcclSuccess.
  [[nodiscard]] hcclResult_t async_error() const { return backend_->async_error().code; }
  // Returns the text of that error, or null if there is none. The text lives as long as the
  // communicator.
  [[nodiscard]] const char* async_error_text();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] device::Device& device() const { return *device_; }
  // Returns the traffic with rank `peer`, or with all other ranks. Throws
  // Error(hcclInvalidArgument) unless `peer` is another rank.
  [[nodiscard]] TrafficReport traffic(std::optional<int> peer) const;
  // Returns how this rank would run a call, in the format of plan_text().
  [[nodiscard]] std::string plan_of(const PlanRequest& request) const;
  // Return how a call runs, as text for people.
  [[nodiscard]] CallPath path_of(const CollectiveCall& call) const {
    return backend_->path_of(call);
  }
  [[nodiscard]] CallPath path_of(const PointToPoint& call) const {
    return call.peer == rank_ ? CallPath{"copy", "a rank sends to itself"}
                              : backend_->path_of(call);
  }
  [[nodiscard]] OperationLog& operation_log() const { return *operation_log_; }

  // Runs `work` unless earlier work on the stream has failed; `work` returns whether it is
  // complete. Turns that failure or an exception into the communicator's fault. call_text()
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
  // A stream on which calls have been queued.
  struct UsedStream {
    std::weak_ptr<device::Stream> stream;
    std::uint64_t id = 0;
    BackendStream* backend = nullptr;
    MessagePlace place{};                    // of a message that is queued now
    std::uint64_t last_ticket = 0;           // of the last call
    bool is_outlived = false;                // whether outlive_calls() has handled it
    std::unique_ptr<StagingBuffer> staging;  // null until a call needs it
  };

  // Call the functions of this paragraph with streams_lock_ held.
  UsedStream& used_stream(device::Stream& stream);
  void enqueue_on(UsedStream& on, device::Stream& stream, MessageList&& calls,
                  std::vector<SelfCopy>&& copies);
  // Returns the address of the stream's staging buffer, or 0 if none is `needed`. Throws
  // Error(hcclOutOfMemory).
  [[nodiscard]] std::uint64_t staging_of(UsedStream& on, bool needed) const;
  void free_staging(UsedStream& used) const noexcept;
  // Keeps the communicator alive until all its calls that are queued on the stream have run.
  void outlive_calls_of(device::Stream& stream);

  [[noreturn]] static void throw_behind_failure(const device::Lookahead& lookahead,
                                                const std::string& call);
  [[nodiscard]] bool is_staged(const CollectiveCall& call) const;
  [[nodiscard]] bool is_staged(const PointToPoint& call) const;
  void make_staging(device::Stream& stream);
  void outlive_calls();
  void note_fault(hcclResult_t code, const char* what);
  // Log calls that are about to be queued. The logged tickets are wrong if another thread queues
  // work on the stream at the same time.
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
  std::atomic<int> first_probed_ = 0;  // the rank that probe() looks at first
  bool has_left_ = false;  // leave() has been called; an open group may still queue calls
  std::shared_ptr<Communicator> own_keeper_;  // set if outlive_calls_of() failed
  std::mutex error_texts_mutex_;
  std::set<std::string> error_texts_;  // kept alive for the program, to which they were returned
  std::vector<bootstrap::ProcessWatch> watches_;  // destroyed first: callbacks use the rest
};

// Returns the table of the handles that hcclComm_t stands for.
[[nodiscard]] HandleTable<Communicator>& communicators();

}  // namespace hccl::comm
