// SPDX-License-Identifier: Apache-2.0
// The back end of a communicator over several nodes, some of which have several ranks. Collectives
// run on two levels: in shared memory on each node, and over connections between the nodes. Sends
// and receives use connections.
#pragma once

#include "call/backend.h"
#include "multinode/node_layout.h"
#include "network/network_backend.h"
#include "node/engine.h"
#include "planner/planner.h"

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace hccl::multinode {

class MultiNodeStream;

// The algorithm name that reports show for divided calls.
inline constexpr std::string_view kTwoLevel = "two_level";

class MultiNodeBackend final : public Backend {
 public:
  // `network` must be connected. Its configuration sets the time limits of all calls; the engine
  // has no limits of its own.
  MultiNodeBackend(std::unique_ptr<network::NetworkBackend> network, std::uint64_t cache_bytes);
  ~MultiNodeBackend() override;

  [[nodiscard]] BackendStream& open_stream(std::uint64_t stream) override;
  void close_stream(BackendStream& stream) noexcept override;
  [[nodiscard]] bool release_staging(BackendStream& stream) noexcept override;
  [[nodiscard]] bool needs_staging(const CollectiveCall& call) const override;
  [[nodiscard]] bool needs_staging(const PointToPoint& call) const override {
    return network_->needs_staging(call);
  }
  [[nodiscard]] bool ranks_share_cores() const override { return network_->ranks_share_cores(); }

  [[nodiscard]] bool failed() const override { return network_->failed(); }
  void throw_if_failed() const override { network_->throw_if_failed(); }
  [[nodiscard]] AsyncError async_error() const override { return network_->async_error(); }
  void fail(hcclResult_t code, const char* why) noexcept override { network_->fail(code, why); }
  void peer_died(int peer) noexcept override { network_->peer_died(peer); }
  void depart() override { network_->depart(); }
  void set_wait_limit(std::uint64_t milliseconds) override {
    network_->set_wait_limit(milliseconds);
  }
  [[nodiscard]] std::optional<Offer> probe(int first, bool only_looks, Deadline deadline,
                                           SpinLock& queueing) override {
    return network_->probe(first, only_looks, deadline, queueing);
  }

  [[nodiscard]] TrafficReport traffic(std::optional<int> peer) const override {
    return network_->traffic(peer);
  }
  [[nodiscard]] PlanSteps plan_of(const PlanRequest& request) const override;
  [[nodiscard]] CallPath path_of(const CollectiveCall& call) const override;
  [[nodiscard]] CallPath path_of(const PointToPoint& call) const override {
    return network_->path_of(call);
  }

  [[nodiscard]] network::NetworkBackend& network() { return *network_; }
  [[nodiscard]] node::Engine& engine() { return engine_; }
  [[nodiscard]] const NodeLayout& layout() const { return layout_; }
  // Returns the planner for calls among the ranks of a column.
  [[nodiscard]] const planner::Planner& column_planner() const { return column_planner_; }

 private:
  const std::unique_ptr<network::NetworkBackend> network_;
  const NodeLayout layout_;
  const planner::Planner column_planner_;
  node::Engine engine_;
  std::mutex streams_mutex_;
  std::vector<std::unique_ptr<MultiNodeStream>> streams_;
};

}  // namespace hccl::multinode
