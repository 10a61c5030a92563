// SPDX-License-Identifier: Apache-2.0
// A rank's membership in a communicator: the only place that wires device, bootstrap and engine
// together.
#pragma once

#include "base/config.h"
#include "base/error.h"
#include "base/handle_table.h"
#include "base/waiter.h"
#include "bootstrap/control_link.h"
#include "bootstrap/process_watch.h"
#include "bootstrap/rank_table.h"
#include "comm/operation_log.h"
#include "comm/self_messages.h"
#include "comm/staging_buffer.h"
#include "comm/traffic_report.h"
#include "device/command_queue.h"
#include "device/device.h"
#include "node/engine.h"
#include "node/node_segment.h"

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

namespace hccl::network {
class NetworkBackend;
struct NetworkStream;
}  // namespace hccl::network

namespace hccl::comm {

inline constexpr int kMostRanks = 4096;

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // Joins as `rank` of `size`, with `device`. Blocks until all have joined or throws Error.
  [[nodiscard]] static std::shared_ptr<Communicator> create(const hcclUniqueId& id, int size,
                                                            int rank,
                                                            std::shared_ptr<device::Device> device);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Throws the communicator's fault if it has one, or Error(hcclInvalidArgument) if the stream is
  // of another device, or SynError if it has been destroyed.
  void check_usable(const device::Stream& stream) const;

  // Queue a validated call, or sends and receives that progress together. Throw the communicator's
  // fault if it has one. Do not block: the caller has waited for room in the stream's queue. Queued
  // work does not keep the communicator alive: see leave().
  void enqueue(device::Stream& stream, const CollectiveCall& call);
  void enqueue(device::Stream& stream, MessageList&& calls, std::vector<SelfCopy>&& copies);
  // Before that, for a call on host memory: makes the stage of the stream, for which there may be
  // no device memory.
  void prepare_staging(device::Stream& stream, bool for_own_messages = false);
  // And for each call with another rank in the order of the program's calls: gives it its
  // place among the messages of the two ranks.
  void number(device::Stream& stream, std::span<PointToPoint> calls);
  // Both, for the messages of a group on one stream; what it sends itself is not paired yet.
  void queue(device::Stream& stream, MessageList&& calls);

  // Returns whether calls have been queued on the stream.
  [[nodiscard]] bool has_called_on(const device::Stream& stream);

  // An order of communicators that all their ranks agree on, if each has an id of its own.
  [[nodiscard]] bool comes_before(const Communicator& other) const;

  // Waits until another rank has offered a message that no receive has been queued for, and returns
  // it; nothing if `timeout` is over first. A timeout of zero only looks. Ranks take turns. Any
  // thread; blocks. Throws the communicator's fault.
  [[nodiscard]] std::optional<node::Offer> probe(std::chrono::milliseconds timeout);

  // Waits for all work queued on this communicator, or until it fails.
  void finalize();
  // Ends this rank's part in the communicator. Its holder may then release it: it lives until the
  // queued work has run.
  void leave();
  // Fails all work on every rank, now and later; `call` is the program's call that asked for it.
  void fail(const char* call);

  // How long calls of this rank wait for others, from now on; 0: for ever. Any thread.
  void set_wait_limit(std::uint64_t milliseconds);

  // Throws the communicator's fault if it has one.
  void throw_if_failed() const;
  [[nodiscard]] bool failed() const { return segment_ && segment_->fault().raised(); }
  // The fault's code; else that of what keeps a transport from working now, or hcclSuccess.
  [[nodiscard]] hcclResult_t async_error();
  // Its text, null if there is none; lives as long as the communicator.
  [[nodiscard]] const char* async_error_text();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] device::Device& device() const { return *device_; }
  // Only if calls run on the engine.
  [[nodiscard]] node::Engine& engine() const { return *engine_; }
  // Returns whether calls run as schedules over endpoints, and not in the engine.
  [[nodiscard]] bool uses_network() const { return network_ != nullptr; }
  // With one other rank, or with all. Throws Error for a rank that there is not.
  [[nodiscard]] TrafficReport traffic(std::optional<int> peer) const;
  // How this rank would run a call of `bytes` (of the message, or of one block), as plan_text() has
  // it.
  [[nodiscard]] std::string plan_of(Collective collective, std::uint64_t bytes, int root,
                                    bool in_place, bool json) const;
  // How a call runs, for people.
  [[nodiscard]] CallPath path_of(const CollectiveCall& call) const;
  [[nodiscard]] CallPath path_of(const PointToPoint& call) const;
  [[nodiscard]] OperationLog& operation_log() const { return *operation_log_; }

  // Run calls on the turn of `stream`. `more_behind`: another call of the lane is queued behind it.
  // `behind`: the messages that are queued next. Block until this rank's part is complete. Throw
  // Error.
  void run_on_network(std::uint32_t lane, const CollectiveCall& call,
                      const device::Lookahead& stream, bool more_behind);
  void exchange_on_network(const network::NetworkStream& stream,
                           std::span<const PointToPoint> calls,
                           std::span<const PointToPoint> behind);

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
  struct StreamLane {
    // From the first sends and receives on. Shared, for it knows how to destroy it; the type is
    // the engine's.
    std::shared_ptr<node::PendingMessages> pending;
    std::weak_ptr<device::Stream> stream;
    std::uint64_t stream_id = 0;
    std::uint64_t last_ticket = 0;         // of a call
    bool is_outlived = false;              // by the communicator: see leave()
    std::unique_ptr<node::Lane> lane;      // from the first collective on, and with several ranks
    std::unique_ptr<StagingBuffer> stage;  // from the first use of host memory on
  };

  Communicator(const hcclUniqueId& id, int size, int rank, std::shared_ptr<device::Device> device);
  // Joins the other ranks. Returns whether this rank is the first of its node. Throws Error.
  bool connect();
  // Makes the segment of this node's ranks. Returns their processors.
  std::vector<node::CpuAllowance> join_node(const bootstrap::RankTable& table);
  void watch_mates(const bootstrap::RankTable& table);
  void tell_others();
  void attach_link(bootstrap::LinkSocket socket);
  // To the other nodes; null where there are none.
  [[nodiscard]] std::shared_ptr<bootstrap::ControlLink> link();
  void cut_link();
  void outlive_calls();
  void note_fault(hcclResult_t code, const char* what);
  // Before calls are queued, if the operation log is on. Another thread that queues at the same
  // time may make the numbers of the work differ from those with which it starts.
  void tell_queued(const device::Stream& stream, const CollectiveCall& call);
  void tell_queued(const device::Stream& stream, std::span<const PointToPoint> calls);
  void log_summary(const bootstrap::RankTable& table) const;
  // With the lock held.
  StreamLane& lane_of(device::Stream& stream);
  void number_on(const StreamLane& lane, std::span<PointToPoint> calls);
  void enqueue_on(StreamLane& lane, device::Stream& stream, MessageList&& calls,
                  std::vector<SelfCopy>&& copies);
  [[nodiscard]] const StagingBuffer* staging_of(StreamLane& lane, bool needed) const;
  // Makes the communicator live until all its calls that are queued on the stream have run.
  void outlive_calls_of(device::Stream& stream);
  void forget_stream(std::uint64_t stream_id);

  const hcclUniqueId id_;
  const int size_;
  const int rank_;
  const std::shared_ptr<device::Device> device_;
  std::unique_ptr<node::NodeSegment> segment_;  // null in a communicator of one rank
  std::unique_ptr<node::Engine> engine_;        // null there, and if there is a network back end
  std::unique_ptr<network::NetworkBackend> network_;  // null where all ranks are on one node
  std::unique_ptr<OperationLog> operation_log_;
  SpinLock lanes_lock_;
  std::vector<std::unique_ptr<StreamLane>> lanes_;
  std::uint32_t next_ordinal_ = 0;
  std::atomic<int> first_probed_ = 0;         // the rank that probe() looks at first
  bool has_left_ = false;                     // a group that is open may still queue calls
  std::shared_ptr<Communicator> own_keeper_;  // while there is no other for queued calls
  std::mutex error_texts_mutex_;
  std::set<std::string> error_texts_;  // that the program may still look at
  // Destroyed first: their callbacks use the segment.
  std::mutex link_mutex_;
  std::shared_ptr<bootstrap::ControlLink> link_;  // null where all ranks are on one node
  std::vector<bootstrap::ProcessWatch> watches_;
};

// The handles behind hcclComm_t.
[[nodiscard]] HandleTable<Communicator>& communicators();

}  // namespace hccl::comm
