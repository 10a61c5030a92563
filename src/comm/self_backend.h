// SPDX-License-Identifier: Apache-2.0
// The back end of a communicator with a single rank: a collective is a copy, or nothing.
#pragma once

#include "call/backend.h"
#include "device/arena.h"
#include "node/host_staging.h"

namespace hccl::comm {

class SelfBackend final : public Backend {
 public:
  // The arena must outlive the back end.
  explicit SelfBackend(device::Arena& arena) : stream_(arena) {}

  [[nodiscard]] BackendStream& open_stream(std::uint64_t /*stream*/) override { return stream_; }
  void close_stream(BackendStream& /*stream*/) noexcept override {}
  [[nodiscard]] bool needs_staging(const CollectiveCall& call) const override {
    return node::uses_host_memory(call, 0, 1);
  }
  [[nodiscard]] bool needs_staging(const PointToPoint& call) const override {
    return node::uses_host_memory(call);
  }
  [[nodiscard]] bool ranks_share_cores() const override { return false; }

  // A failed call does not fail the communicator, because no other rank depends on the call.
  [[nodiscard]] bool failed() const override { return false; }
  void throw_if_failed() const override {}
  [[nodiscard]] AsyncError async_error() const override { return {}; }
  void fail(hcclResult_t /*code*/, const char* /*why*/) noexcept override {}
  void peer_died(int /*peer*/) noexcept override {}
  void depart() override {}
  void set_wait_limit(std::uint64_t /*milliseconds*/) override {}
  [[nodiscard]] std::optional<Offer> probe(int /*first*/, bool /*only_looks*/,
                                           Deadline /*deadline*/, SpinLock& /*queueing*/) override {
    return std::nullopt;
  }

  [[nodiscard]] TrafficReport traffic(std::optional<int> /*peer*/) const override {
    return {"copy", "memory", 0, 0, 0, 0};
  }
  [[nodiscard]] PlanSteps plan_of(const PlanRequest& /*request*/) const override {
    return {"copy", "memory", ""};
  }
  [[nodiscard]] CallPath path_of(const CollectiveCall& /*call*/) const override {
    return {"copy", "the communicator has one rank"};
  }
  [[nodiscard]] CallPath path_of(const PointToPoint& /*call*/) const override {
    return {"copy", "a rank sends to itself"};
  }

 private:
  class SelfStream final : public BackendStream {
   public:
    explicit SelfStream(device::Arena& arena) : arena_(arena) {}

    void begin_collectives(std::uint32_t /*ordinal*/) override {}
    void number(PointToPoint& /*call*/) override {}
    bool run(const CollectiveCall& call, std::uint64_t staging, CallLookahead& ahead) override;
    bool exchange(std::span<const PointToPoint> /*calls*/, const MessagePlace& /*place*/,
                  std::uint64_t /*staging*/, GroupLookahead& /*ahead*/) override {
      return true;
    }

   private:
    device::Arena& arena_;
  };

  SelfStream stream_;  // serves all streams, because it has no state
};

}  // namespace hccl::comm
