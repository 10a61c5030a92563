// SPDX-License-Identifier: Apache-2.0
// The back end of a communicator whose ranks all map each other's memory.
#pragma once

#include "call/backend.h"
#include "node/engine.h"
#include "node/node_segment.h"

#include <memory>
#include <mutex>
#include <vector>

namespace hccl::node {

class NodeBackend final : public Backend {
 public:
  NodeBackend(std::shared_ptr<NodeSegment> segment, const EngineOptions& options);
  ~NodeBackend() override;

  [[nodiscard]] BackendStream& open_stream(std::uint64_t stream) override;
  void close_stream(BackendStream& stream) noexcept override;
  [[nodiscard]] bool release_staging(BackendStream& stream) noexcept override;
  [[nodiscard]] bool needs_staging(const CollectiveCall& call) const override;
  [[nodiscard]] bool needs_staging(const PointToPoint& call) const override;
  [[nodiscard]] bool ranks_share_cores() const override { return !segment_->cores().exclusive; }

  [[nodiscard]] bool failed() const override { return segment_->fault().raised(); }
  void throw_if_failed() const override { segment_->throw_if_failed(); }
  [[nodiscard]] AsyncError async_error() const override;
  void fail(hcclResult_t code, const char* why) noexcept override { segment_->fail(code, why); }
  void peer_died(int peer) noexcept override { segment_->rank_died(peer); }
  void depart() override { segment_->depart(); }
  void set_wait_limit(std::uint64_t milliseconds) override {
    engine_.wait_limit().set(milliseconds);
  }

  [[nodiscard]] std::optional<Offer> probe(int first, bool only_looks, Deadline deadline,
                                           SpinLock& queueing) override;

  [[nodiscard]] TrafficReport traffic(std::optional<int> peer) const override;
  [[nodiscard]] PlanSteps plan_of(const PlanRequest& request) const override;
  [[nodiscard]] CallPath path_of(const CollectiveCall& call) const override;
  [[nodiscard]] CallPath path_of(const PointToPoint& call) const override;

 private:
  class NodeStream;

  const std::shared_ptr<NodeSegment> segment_;
  Engine engine_;
  std::mutex streams_mutex_;
  std::vector<std::unique_ptr<NodeStream>> streams_;
};

}  // namespace hccl::node
