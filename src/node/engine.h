// SPDX-License-Identifier: Apache-2.0
// Runs the calls of ranks that map each other's memory. Small collectives travel in the slots;
// larger ones are cut into tiles that whichever ranks are running compute for everybody.
#pragma once

#include "base/wait_limit.h"
#include "call/collective_call.h"
#include "call/lookahead.h"
#include "call/point_to_point.h"
#include "device/arena.h"
#include "node/mailboxes.h"
#include "node/node_segment.h"
#include "node/staging.h"
#include "node/stall_monitor.h"
#include "node/stream_place.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

namespace hccl::node {

struct EngineOptions {
  std::uint64_t cache_bytes = 0;  // operations on more than this store past the cache
  std::chrono::milliseconds operation_timeout{0};  // 0: never
  std::chrono::milliseconds hang_report{0};        // 0: never
};

class Engine {
 public:
  // `node` must outlive the engine.
  Engine(NodeSegment& node, const EngineOptions& options)
      : node_(node),
        cache_bytes_(options.cache_bytes),
        stalls_(node, options.operation_timeout, options.hang_report),
        mailboxes_(node) {}

  // Runs one operation, on a stream's turn. `ahead`: the calls that follow on this lane, or null.
  // `staging`: copies this rank's host memory, or null. Returns true once the operation is
  // complete. Unless the wait budget of `ahead` is unlimited it may return false instead of
  // blocking: call it again with the same arguments to resume. Throws Error if the operation
  // failed.
  bool execute(Lane& lane, const CollectiveCall& call, CallLookahead* ahead = nullptr,
               Staging* staging = nullptr);

  // Runs sends and receives with other ranks concurrently, on a stream's turn. `place`: the
  // position of the calls in their stream. `ahead`: the groups that follow them there. `staging`:
  // staging buffer of kExchangeStagingBytes for calls on host memory, or 0 if there are none.
  // Returns as execute() does. Throws Error if one of the calls failed.
  bool exchange(const StreamPlace& place, std::span<const PointToPoint> calls,
                GroupLookahead& ahead, device::DeviceAddress staging = 0);
  [[nodiscard]] static std::shared_ptr<PendingMessages> make_pending_messages();

  // Numbers the calls that exchange() runs.
  [[nodiscard]] Mailboxes& mailboxes() { return mailboxes_; }
  // Limits how long calls of this rank wait for others, from now on.
  [[nodiscard]] WaitLimit& wait_limit() { return stalls_.wait_limit(); }

  // Returns true if a call on device memory goes through the slots.
  [[nodiscard]] static bool is_eager(const CollectiveCall& call, int ranks) {
    return send_bytes(call, ranks) <= Slot::kPayloadBytes;
  }

 private:
  NodeSegment& node_;
  const std::uint64_t cache_bytes_;
  StallMonitor stalls_;
  Mailboxes mailboxes_;
};

}  // namespace hccl::node
