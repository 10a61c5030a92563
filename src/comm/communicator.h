// SPDX-License-Identifier: Apache-2.0
// A rank's membership of a communicator: queues calls on streams in an order that all ranks agree
// on, and leaves it to a back end to run them.
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
  // Joins as `rank` of `size`, with `device`. Blocks until all have joined. Throws Error.
  [[nodiscard]] static std::shared_ptr<Communicator> create(const hcclUniqueId& id, int size,
                                                            int rank,
                                                            std::shared_ptr<device::Device> device);
  // Is to be owned by a shared_ptr. `backend`: has joined. `log`: says what calls do.
  Communicator(const hcclUniqueId& id, int size, int rank, std::shared_ptr<device::Device> device,
               std::unique_ptr<Backend> backend, std::unique_ptr<OperationLog> log);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Throws the communicator's fault if it has one, or Error(hcclInvalidArgument) if the stream is
  // of another device, or SynError if it has been destroyed.
  void check_usable(const device::Stream& stream) const;

  // Queue a validated call; the parts of one, collectives one after the other, sends and receives
  // side by side; or the messages of a group. Throw the communicator's fault if it has one. Do not
  // block: the caller has waited for room in the stream's queue. Queued work does not keep the
  // communicator alive: see leave().
  void enqueue(device::Stream& stream, const CollectiveCall& call);
  void enqueue(device::Stream& stream, const PointToPoint& call);
  void enqueue(device::Stream& stream, const std::vector<CollectiveCall>& parts);
  void enqueue(device::Stream& stream, const std::vector<PointToPoint>& parts);
  void enqueue(device::Stream& stream, MessageList&& calls);

  // Queue the calls of a group in three steps: prepare() makes the staging buffer for a call that
  // is kept, for which there may be no device memory. number() gives each message with another rank
  // its place among the messages of the two, in the order of the program's calls.
  // enqueue_numbered() queues a stream's messages, and copies for those to the rank itself.
  void prepare(device::Stream& stream, const CollectiveCall& call);
  void prepare(device::Stream& stream, const PointToPoint& call);
  void number(device::Stream& stream, PointToPoint& call);
  void enqueue_numbered(device::Stream& stream, MessageList&& calls,
                        std::vector<SelfCopy>&& copies);

  // Returns whether calls have been queued on the stream.
  [[nodiscard]] bool has_called_on(const device::Stream& stream);

  // An order of communicators that all their ranks agree on, if each has an id of its own.
  [[nodiscard]] bool comes_before(const Communicator& other) const;

  // Waits until another rank has offered a message that no receive has been queued for, and returns
  // it; nothing if `timeout` is over first. A timeout of zero only looks. Ranks take turns. Any
  // thread; blocks. Throws the communicator's fault.
  [[nodiscard]] std::optional<Offer> probe(std::chrono::milliseconds timeout);

  // Waits for all work queued on this communicator, or until it fails.
  void finalize();
  // Ends this rank's part in the communicator. Its holder may then release it: it lives until the
  // queued work has run.
  void leave();
  // Fails all work on every rank, now and later; `call` is the program's call that asked for it.
  void fail(const char* call);
  // Fails the communicator when the process of rank `mate` of this node exits.
  void watch(const FileDescriptor& process, int mate);

  // Sets how long calls of this rank wait for others; 0: for ever. Any thread.
  void set_wait_limit(std::uint64_t milliseconds) { backend_->set_wait_limit(milliseconds); }

  // Throws the communicator's fault if it has one.
  void throw_if_failed() const { backend_->throw_if_failed(); }
  [[nodiscard]] bool failed() const { return backend_->failed(); }
  // Returns the fault's code; else that of what keeps calls from working now, or hcclSuccess.
  [[nodiscard]] hcclResult_t async_error() const { return backend_->async_error().code; }
  // Returns its text, null if there is none; lives as long as the communicator.
  [[nodiscard]] const char* async_error_text();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] device::Device& device() const { return *device_; }
  // Returns the traffic with one other rank, or with all. Throws Error for a rank that there is
  // not.
  [[nodiscard]] TrafficReport traffic(std::optional<int> peer) const;
  // Returns how this rank would run a call, as plan_text() has it.
  [[nodiscard]] std::string plan_of(const PlanRequest& request) const;
  // Return how a call runs, for people.
  [[nodiscard]] CallPath path_of(const CollectiveCall& call) const {
    return backend_->path_of(call);
  }
  [[nodiscard]] CallPath path_of(const PointToPoint& call) const;
  [[nodiscard]] OperationLog& operation_log() const { return *operation_log_; }

  // On a stream's turn, for a call that is described so: throws Error with the cause, because work
  // before it on its stream has failed.
  [[noreturn]] static void throw_behind_failure(const device::Lookahead& lookahead,
                                                const std::string& call);
  // On a stream's turn: runs `work`, which returns whether it has ended, and makes what it throws
  // the communicator's fault.
  template <class Work>
  [[nodiscard]] device::Outcome run_reporting_faults(Work work) noexcept {
    try {
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
    MessagePlace place{};                    // of messages that would be queued now
    std::uint64_t last_ticket = 0;           // of a call
    bool is_outlived = false;                // by the communicator: see leave()
    std::unique_ptr<StagingBuffer> staging;  // from the first call that needs it on
  };

  // With the lock held.
  UsedStream& used_stream(device::Stream& stream);
  void enqueue_on(UsedStream& on, device::Stream& stream, MessageList&& calls,
                  std::vector<SelfCopy>&& copies);
  // Returns the address of the stream's staging buffer, 0 if none is `needed`. Throws
  // Error(hcclOutOfMemory).
  [[nodiscard]] std::uint64_t staging_of(UsedStream& on, bool needed) const;
  // Makes the communicator live until all its calls that are queued on the stream have run.
  void outlive_calls_of(device::Stream& stream);

  [[nodiscard]] bool is_staged(const CollectiveCall& call) const;
  [[nodiscard]] bool is_staged(const PointToPoint& call) const;
  void make_staging(device::Stream& stream);
  void outlive_calls();
  void note_fault(hcclResult_t code, const char* what);
  // Before calls are queued, if the operation log is on. Another thread that queues at the same
  // time may make the numbers of the work differ from those with which it starts.
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
  std::uint32_t next_ordinal_ = 0;            // of a stream with collectives
  std::atomic<int> first_probed_ = 0;         // the rank that probe() looks at first
  bool has_left_ = false;                     // a group that is open may still queue calls
  std::shared_ptr<Communicator> own_keeper_;  // while there is no other for queued calls
  std::mutex error_texts_mutex_;
  std::set<std::string> error_texts_;             // that the program may still look at
  std::vector<bootstrap::ProcessWatch> watches_;  // destroyed first: their callbacks use the rest
};

// The handles behind hcclComm_t.
[[nodiscard]] HandleTable<Communicator>& communicators();

}  // namespace hccl::comm
