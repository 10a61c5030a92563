// SPDX-License-Identifier: Apache-2.0
// Runs the calls of ranks that map each other's memory: collectives by EagerPath, HostChain,
// HostReads, HostPath or CooperativePath, and groups of sends and receives by Exchange.
#pragma once

#include "base/wait_limit.h"
#include "call/collective_call.h"
#include "call/lookahead.h"
#include "call/point_to_point.h"
#include "device/arena.h"
#include "node/host_staging.h"
#include "node/mailboxes.h"
#include "node/node_segment.h"
#include "node/stall_monitor.h"
#include "node/stream_place.h"
#include "node/wait_observer.h"

#include <chrono>
#include <cstdint>
#include <span>

namespace hccl::node {

struct EngineOptions {
  // The size of the caches, which determines how long an operation must be to bypass them.
  std::uint64_t cache_bytes = 0;
  std::chrono::milliseconds operation_timeout{0};  // 0: never
  std::chrono::milliseconds hang_report{0};        // 0: never
};

struct CollectiveOperation;

class Engine {
 public:
  // `node` must outlive the engine.
  Engine(NodeSegment& node, const EngineOptions& options)
      : node_(node),
        cache_bytes_(options.cache_bytes),
        stalls_(node, options.operation_timeout, options.hang_report),
        mailboxes_(node) {}

  // Runs one operation in stream order. `ahead`: the later calls of this lane, or null. `staging`:
  // copies this rank's host memory; null if this rank uses no staging buffer. `observer`: watches
  // the waits of the operation; null if the engine's own time limits apply. Blocks until this
  // rank's part is complete and returns true. If the wait budget of `ahead` is limited, may return
  // false instead of blocking; another call with the same arguments then resumes the operation.
  // Throws Error if the operation fails.
  bool execute(Lane& lane, const CollectiveCall& call, CallLookahead* ahead = nullptr,
               HostStaging* staging = nullptr, WaitObserver* observer = nullptr);

  // Runs a group of sends to and receives from other ranks. The calls of a group run concurrently;
  // groups run one after the other, in stream order. `place`: the position of the calls in their
  // stream. `ahead`: the later groups of that stream. `staging`: a staging buffer of kStagingBytes,
  // or 0 if neither these calls nor pending ones use host memory. Blocks and returns like
  // execute(). Throws Error if one of the calls fails.
  bool exchange(const StreamPlace& place, std::span<const PointToPoint> calls,
                GroupLookahead& ahead, device::DeviceAddress staging = 0);

  // Returns the mailboxes, which assign numbers to the calls that exchange() runs.
  [[nodiscard]] Mailboxes& mailboxes() { return mailboxes_; }
  // Returns the limit on how long this rank waits for other ranks. A change applies to waits that
  // begin afterwards.
  [[nodiscard]] WaitLimit& wait_limit() { return stalls_.wait_limit(); }

  // Returns whether a call's data travels in the slots.
  [[nodiscard]] static bool is_eager(const CollectiveCall& call, int ranks) {
    return send_bytes(call, ranks) <= Slot::kPayloadBytes;
  }

 private:
  [[nodiscard]] bool run_on_host(CollectiveOperation& op);

  NodeSegment& node_;
  const std::uint64_t cache_bytes_;
  StallMonitor stalls_;
  Mailboxes mailboxes_;
};

}  // namespace hccl::node
