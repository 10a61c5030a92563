// SPDX-License-Identifier: Apache-2.0
// The network back end's state for one stream: its connections, and the collectives that run over
// them. Except for some broadcasts, a call writes no output until all ranks are known to have made
// the same call: see run().
#pragma once

#include "call/backend.h"
#include "network/network_backend.h"
#include "network/schedule_group.h"
#include "network/schedule_runner.h"
#include "planner/planner.h"

#include <memory>
#include <mutex>
#include <span>
#include <string_view>

namespace hccl::network {

class CallWatchdog;

// Runs one call at a time, in stream order.
class StreamConnections final : public BackendStream {
 public:
  StreamConnections(NetworkBackend& network, std::uint64_t id)
      : network_(network),
        id_(id),
        group_(network.planner(), network.rank()),
        runner_(network, 0) {}

  void begin_collectives(std::uint32_t ordinal) override {
    ordinal_ = ordinal;
    runner_.set_ordinal(ordinal);
  }
  void number(PointToPoint& call) override { network_.messages().number(call, id_); }
  // run() and exchange() throw Error, for example if the communicator has failed, a peer is lost, a
  // peer makes a different call, or the wait times out.
  //
  // A call is short if neither of its buffers exceeds min(1 MiB, 128 KiB times the number of
  // ranks). Before longer calls, reduces, and calls without elements except barriers, the ranks
  // agree on the call. run() stages the output of other short calls, and copies it to `recv` when
  // the data of all ranks has arrived. After a short broadcast, where only the root sends data, the
  // ranks agree unless another collective is next in the queue of the root's stream.
  bool run(const CollectiveCall& call, std::uint64_t staging, CallLookahead& ahead) override;
  bool exchange(std::span<const PointToPoint> calls, const MessagePlace& place,
                std::uint64_t staging, GroupLookahead& ahead) override;

  // Calls NetworkBackend::part_from() for all endpoints. Call before destruction.
  void part(Deadline deadline);
  [[nodiscard]] std::uint64_t id() const { return id_; }
  // Returns the number of collectives that this rank has completed on the stream. Call it only
  // within BackendStream::run() or exchange().
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  [[nodiscard]] std::uint32_t ordinal() const { return ordinal_; }
  // Counts a collective that ran with `algorithm` and is complete. Call it only within
  // BackendStream::run().
  void finish_call(const CollectiveCall& call, std::string_view algorithm);
  // Returns the wait set on which the stream's calls sleep. Creates it on first use; throws
  // Error(hcclSystemError) if no file descriptor is left. Call it only within BackendStream::run()
  // or exchange().
  [[nodiscard]] transport::WaitSet& wait_set();
  // Wakes the call that sleeps on the wait set, if any. Thread safety: any thread.
  void wake();

  // Checks that this rank may access the buffers that it uses in a call, and registers them with
  // the transports. Throws as require_readable() and require_writable() do.
  void prepare_buffers(const CollectiveCall& call);

 private:
  // Moves the data of a call under a watchdog. If `agrees_first`, the ranks first agree on the
  // call.
  void run_watched(const CollectiveCall& call, const planner::Plan& plan, const CallHeader& header,
                   Memory& send, Memory& recv, const CallLookahead& ahead, bool agrees_first);
  // Blocks until all ranks have reached the call. Throws CallMismatch if a rank makes a different
  // call.
  void agree(const CallHeader& header, CallWatchdog& watch);

  NetworkBackend& network_;
  const std::uint64_t id_;
  std::uint32_t ordinal_ = 0;  // set by begin_collectives()
  std::uint64_t calls_ = 0;
  std::mutex wait_mutex_;
  std::unique_ptr<transport::WaitSet> wait_set_;
  ScheduleGroup group_;  // all ranks
  ScheduleRunner runner_;
  Scratch staged_output_;
  Scratch prescaled_input_;
};

}  // namespace hccl::network
