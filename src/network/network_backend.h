// SPDX-License-Identifier: Apache-2.0
// The back end of a communicator whose ranks do not all map each other's memory. Holds the routes
// to the other ranks and, for each stream, the connections that its calls use.
#pragma once

#include "base/config.h"
#include "base/wait_limit.h"
#include "base/waiter.h"
#include "bootstrap/control_link.h"
#include "bootstrap/rank_table.h"
#include "call/backend.h"
#include "network/network_memory.h"
#include "network/network_messages.h"
#include "network/routes.h"
#include "network/stall_reports.h"
#include "network/traffic.h"
#include "node/node_segment.h"
#include "planner/planner.h"
#include "transport/transport.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hccl::network {

class StreamConnections;

class NetworkBackend final : public Backend {
 public:
  // Throws Error(hcclInvalidArgument) for an unknown algorithm or transport.
  NetworkBackend(std::shared_ptr<const Config> config, int rank, int size);
  ~NetworkBackend() override;

  // Opens the transports that HCCL_TRANSPORT allows, and returns this rank's addresses, which the
  // other ranks need. Throws what TransportFactory::make() throws, and Error(hcclSystemError) if
  // none of the transports is available.
  [[nodiscard]] Bytes announce(const bootstrap::CommunicatorSecret& secret) {
    return routes_.announce(secret);
  }
  // Chooses a transport for each peer, and attaches the link over which nodes report faults.
  // `table` contains each rank's result of announce(); connect() takes the link out of `table`.
  // `segment` is the memory that the ranks of this node share. Throws Error(hcclInvalidUsage) if no
  // transport reaches a rank; the text names the rank and the reason.
  void connect(bootstrap::RankTable& table, planner::Topology topology,
               std::vector<std::string> rank_texts, std::shared_ptr<node::NodeSegment> segment);

  [[nodiscard]] BackendStream& open_stream(std::uint64_t stream) override;
  void close_stream(BackendStream& stream) noexcept override;
  // No call needs staging, because calls access host memory directly.
  [[nodiscard]] bool needs_staging(const CollectiveCall& /*call*/) const override { return false; }
  [[nodiscard]] bool needs_staging(const PointToPoint& /*call*/) const override { return false; }
  [[nodiscard]] bool ranks_share_cores() const override { return !segment_->cores().exclusive; }

  [[nodiscard]] bool failed() const override { return segment_->fault().raised(); }
  void throw_if_failed() const override { segment_->throw_if_failed(); }
  [[nodiscard]] AsyncError async_error() const override;
  void fail(hcclResult_t code, const char* why) noexcept override;
  void peer_died(int peer) noexcept override;
  void depart() override;
  void set_wait_limit(std::uint64_t milliseconds) override { wait_limit_.set(milliseconds); }
  [[nodiscard]] std::optional<Offer> probe(int first, bool only_looks, Deadline deadline,
                                           SpinLock& queueing) override;

  [[nodiscard]] TrafficReport traffic(std::optional<int> peer) const override;
  [[nodiscard]] PlanSteps plan_of(const PlanRequest& request) const override;
  [[nodiscard]] CallPath path_of(const CollectiveCall& call) const override;
  [[nodiscard]] CallPath path_of(const PointToPoint& call) const override;

  // Opens a connection for a call.
  [[nodiscard]] std::unique_ptr<transport::Endpoint> open(int peer,
                                                          transport::ConnectionId connection) {
    return routes_.open(peer, connection);
  }
  // Shuts down an endpoint; call before the endpoint is destroyed. Blocks until the peer has
  // received everything that was sent, the peer is lost, or the deadline has passed. If the
  // communicator has failed, cuts the endpoint and does not block.
  void part_from(transport::Endpoint& endpoint, Deadline deadline) const;
  // Calls NetworkMemory::register_memory(). Call this function before a collective or message uses
  // the buffer.
  void register_memory(std::uint64_t address, std::uint64_t bytes) {
    memory_->register_memory(address, bytes);
  }
  // Wakes all threads that wait in calls or in probe(), which then check for faults and queries.
  void wake();
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] const Config& config() const { return *config_; }
  [[nodiscard]] NetworkMessages& messages() { return messages_; }
  // Returns the limit on this rank's waits for other ranks.
  [[nodiscard]] WaitLimit& wait_limit() { return wait_limit_; }
  [[nodiscard]] const planner::Planner& planner() const { return *planner_; }
  [[nodiscard]] node::NodeSegment& segment() const { return *segment_; }
  [[nodiscard]] device::Arena& arena() const { return segment_->arena(); }
  [[nodiscard]] WaitLadder ladder() const { return segment_->ladder(); }
  // Returns the description of a rank: "rank 3 (pid 41, host a)".
  [[nodiscard]] const std::string& rank_text(int rank) const { return routes_.rank_text(rank); }
  [[nodiscard]] Traffic& counted() { return traffic_; }
  [[nodiscard]] StallReports& stall_reports() { return stall_reports_; }
  // Returns true only on the first call, so that a communicator writes at most one hang report.
  [[nodiscard]] bool claim_hang_report() { return !hang_reported_.exchange(true); }

 private:
  void attach_link(bootstrap::LinkSocket socket);
  // Returns the link to the other nodes, or null if there is none.
  [[nodiscard]] std::shared_ptr<bootstrap::ControlLink> link();
  void cut_link();
  // If the communicator has failed, reports the fault to the ranks of other nodes.
  void tell_others();

  const std::shared_ptr<const Config> config_;
  const int rank_;
  const int size_;
  WaitLimit wait_limit_{config_->operation_timeout};
  Routes routes_;
  std::shared_ptr<node::NodeSegment> segment_;
  std::unique_ptr<NetworkMemory> memory_;
  std::optional<planner::Planner> planner_;
  std::atomic<bool> hang_reported_{false};
  Traffic traffic_;
  StallReports stall_reports_;
  NetworkMessages messages_;
  std::mutex streams_mutex_;
  std::vector<std::unique_ptr<StreamConnections>> streams_;
  std::mutex link_mutex_;
  std::shared_ptr<bootstrap::ControlLink> link_;  // null on a single node and after cut_link()
};

}  // namespace hccl::network
