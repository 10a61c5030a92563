// SPDX-License-Identifier: Apache-2.0
// Which path a communicator's call takes, in words.
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/host_staging.h"
#include "device/stream.h"
#include "network/network_backend.h"

#include <algorithm>

namespace hccl::comm {
namespace {

CallPath node_path(const CollectiveCall& call, int ranks) {
  const std::uint64_t bytes = send_bytes(call, ranks);
  if (node::Engine::is_eager(call, ranks)) {
    return {"eager", text("what a rank sends, ", bytes, " B, fits into its slot of ",
                          node::Slot::kPayloadBytes, " B")};
  }
  return {"cooperative", text("what a rank sends, ", bytes, " B, is more than its slot of ",
                              node::Slot::kPayloadBytes, " B")};
}

}  // namespace

CallPath Communicator::path_of(const CollectiveCall& call) const {
  if (size_ == 1) return {"copy", "the communicator has one rank"};
  if (!network_) {
    CallPath path = node_path(call, size_);
    if (!uses_host_memory(call, rank_, size_)) return path;
    return {"host staging, then " + path.name, "peers cannot map host memory, and " + path.reason};
  }
  const planner::Request request{call.collective, chunk_bytes(call, size_), rank_,
                                 std::max(call.root, 0), false};
  const planner::Plan plan = network_->planner().plan(request);
  return {text("schedule ", plan.algorithm->name, " over ", network_->transports(), ", ",
               plan.shape.channels, plan.shape.channels == 1 ? " channel" : " channels"),
          network_->planner().reason(request)};
}

CallPath Communicator::path_of(const PointToPoint& call) const {
  if (call.peer == rank_) return {"copy", "a rank sends to itself"};
  if (network_) {
    return {text("stream over ", network_->transport_to(call.peer)),
            "the ranks share no memory, or HCCL_ALGO or HCCL_TRANSPORT is set"};
  }
  if (call.bytes() <= node::Message::kPayloadBytes) {
    return {"mailbox", text("the message, ", call.bytes(), " B, fits into the mailbox of ",
                            node::Message::kPayloadBytes, " B")};
  }
  if (uses_host_memory(call)) return {"host staging", "peers cannot map host memory"};
  return {"copy by the receiver",
          text("the message, ", call.bytes(), " B, is more than the mailbox of ",
               node::Message::kPayloadBytes, " B")};
}

void Communicator::tell_queued(const device::Stream& stream, const CollectiveCall& call) {
  const std::uint64_t bytes = std::max(send_bytes(call, size_), recv_bytes(call, size_));
  operation_log_->note_path(call.collective, bytes, uses_host_memory(call, rank_, size_),
                            [&] { return path_of(call); });
  operation_log_->note_queued(describe(call), bytes, {stream.id(), stream.pushed() + 1});
}

void Communicator::tell_queued(const device::Stream& stream, std::span<const PointToPoint> calls) {
  for (const PointToPoint& call : calls) {
    operation_log_->note_path(Collective::point_to_point, call.bytes(), uses_host_memory(call),
                              [&] { return path_of(call); });
    operation_log_->note_queued(describe(call), call.bytes(), {stream.id(), stream.pushed() + 1});
  }
}

}  // namespace hccl::comm
