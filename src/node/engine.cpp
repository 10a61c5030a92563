// SPDX-License-Identifier: Apache-2.0
// Chooses the path of a call.
#include "node/engine.h"

#include "node/collective_operation.h"
#include "node/cooperative_path.h"
#include "node/eager_path.h"
#include "node/exchange.h"
#include "node/host_chain.h"
#include "node/host_path.h"
#include "node/host_reads.h"
#include "node/message_steps.h"

#include <atomic>

namespace hccl::node {

bool Engine::execute(Lane& lane, const CollectiveCall& call, CallLookahead* ahead,
                     HostStaging* staging, WaitObserver* observer) {
  lane.attach();
  CollectiveOperation op(lane, call, node_.rank(), node_.size(), lane.number(), staging);
  op.ahead = ahead;
  op.observer = observer;
  LaneTurn turn(lane, !op.posts_data());
  // Peers may have begun or completed an operation that this rank has posted, so this rank runs it
  // even after a fault.
  if (node_.fault().raised() && !lane.posted(op.number)) node_.fault().throw_error();
  RankRecord& record = node_.own_record();
  record.in_operation.store(lane.ordinal() + 1, std::memory_order_relaxed);
  bool complete = false;
  EagerOutcome outcome = EagerOutcome::other_path;
  if (op.posts_data()) outcome = EagerPath(node_, stalls_, op).run();
  if (outcome != EagerOutcome::other_path) {
    complete = outcome == EagerOutcome::complete;
  } else if (staging != nullptr && !op.posts_data() && run_on_host(op)) {
    turn.set_uses_state(false);
    complete = true;
  } else {
    turn.set_uses_state(true);
    complete = CooperativePath(node_, stalls_, cache_bytes_, op).run();
    if (complete) lane.end_withdrawal();
  }
  if (!complete) turn.suspend();
  record.in_operation.store(0, std::memory_order_relaxed);
  return complete;
}

// Runs the operation if the buffers of all ranks are in host memory. Otherwise returns false.
bool Engine::run_on_host(CollectiveOperation& op) {
  const std::uint32_t first = op.lane.slices_done();
  const CollectiveCall& call = op.staging->host_call();
  if (HostChain::serves(call, node_))
    return HostChain(node_, stalls_, cache_bytes_, op, first).run();
  if (HostReads(node_, stalls_, cache_bytes_, op, first).run()) return true;
  return HostPath(node_, stalls_, cache_bytes_, op, first).run();
}

bool Engine::exchange(const StreamPlace& place, std::span<const PointToPoint> calls,
                      GroupLookahead& ahead, device::DeviceAddress staging) {
  node_.throw_if_failed();
  MessageSteps steps(node_, mailboxes_, staging, place.pending->staging_ring(), cache_bytes_);
  return Exchange(node_, stalls_, steps, place, calls, ahead).run();
}

}  // namespace hccl::node
