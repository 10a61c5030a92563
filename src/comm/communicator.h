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
  // Must be owned by a shared_ptr. `backend` has joined the other ranks.
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

  // Returns the order of two communicators; all ranks agree on it if their ids differ.
  [[nodiscard]] bool comes_before(const Communicator& other) const;

  // Returns a message that another rank has offered and that no receive is queued for. Blocks until
  // there is one; returns nothing once `timeout` has passed, and at once if it is zero. Looks at
  // the ranks round robin. Thread safety: any thread. Throws the communicator's fault.
  [[nodiscard]] std::optional<Offer> probe(std::chrono::milliseconds timeout);

  // Blocks until all work queued on this communicator has run, or it has failed.
  void finalize();
  // Ends this rank's membership. The owner may then release the communicator, which keeps itself
  // until the queued work has run.
  void leave();
  // Fails all queued and future work on every rank. `why`: the reason, as in "called
  // hcclCommAbort". Allocates nothing.
  void fail(const char* why) noexcept { backend_->fail(hcclSystemError, why); }
  // Fails the communicator when the process of rank `mate` of this node exits.
  void watch(const FileDescriptor& process, int mate);

  // Sets how long calls of this rank wait for others; 0: without a limit. Thread safety: any
  // thread.
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
  // Returns the traffic with one other rank, or with all. Throws Error(hcclInvalidArgument) unless
  // `peer` is another rank.
  [[nodiscard]] TrafficReport traffic(std::optional<int> peer) const;
  // Returns how this rank would run a call, as plan_text() has it.
  [[nodiscard]] std::string plan_of(const PlanRequest& request) const;
  // Return how a call runs, for people.
  [[nodiscard]] CallPath path_of(const CollectiveCall& call) const {
    return backend_->path_of(call);
  }
  [[nodiscard]] CallPath path_of(const PointToPoint& call) const;
  [[nodiscard]] OperationLog& operation_log() const { return *operation_log_; }

  // Throws the error of a call that did not run because earlier work on its stream has failed.
  // `call`: the call's description.
  [[noreturn]] static void throw_behind_failure(const device::Lookahead& lookahead,
                                                const std::string& call);
  // Runs `work` on a stream's turn, and makes an exception the communicator's fault. `work` returns
  // whether it is complete.
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
    MessagePlace place{};                    // of a message that is queued now
    std::uint64_t last_ticket = 0;           // of the last call
    bool is_outlived = false;                // outlive_calls() has seen it
    std::unique_ptr<StagingBuffer> staging;  // null until a call needs it
  };

  // Call with streams_lock_ held.
  UsedStream& used_stream(device::Stream& stream);
  void enqueue_on(UsedStream& on, device::Stream& stream, MessageList&& calls,
                  std::vector<SelfCopy>&& copies);
  // Returns the address of the stream's staging buffer, 0 if none is `needed`. Throws
  // Error(hcclOutOfMemory).
  [[nodiscard]] std::uint64_t staging_of(UsedStream& on, bool needed) const;
  // Keeps the communicator until all its calls that are queued on the stream have run.
  void outlive_calls_of(device::Stream& stream);

  [[nodiscard]] bool is_staged(const CollectiveCall& call) const;
  [[nodiscard]] bool is_staged(const PointToPoint& call) const;
  void make_staging(device::Stream& stream);
  void outlive_calls();
  void note_fault(hcclResult_t code, const char* what);
  // Log calls that are about to be queued. The tickets in the log are off if another thread queues
  // at the same time.
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
  std::uint32_t next_ordinal_ = 0;            // of the next stream with collectives
  std::atomic<int> first_probed_ = 0;         // the rank that probe() looks at first
  bool has_left_ = false;                     // an open group may still queue calls
  std::shared_ptr<Communicator> own_keeper_;  // set while no Keeper is queued
  std::mutex error_texts_mutex_;
  std::set<std::string> error_texts_;             // returned to the program
  std::vector<bootstrap::ProcessWatch> watches_;  // destroyed first: their callbacks use the rest
};

// The handles behind hcclComm_t.
[[nodiscard]] HandleTable<Communicator>& communicators();

}  // namespace hccl::comm
