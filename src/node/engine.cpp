// SPDX-License-Identifier: Apache-2.0
// The life of an engine and of one operation.
#include "node/engine.h"

#include "node/operation.h"

namespace hccl::node {

Engine::Engine(NodeSegment& segment, const EngineOptions& options)
    : segment_(segment),
      fault_(segment.fault()),
      arena_(segment.arena()),
      rank_(segment.rank()),
      size_(segment.size()),
      mailboxes_(&segment.control().mailbox(0, 0)),
      next_send_(static_cast<std::size_t>(size_)),
      next_receive_(static_cast<std::size_t>(size_)),
      cache_bytes_(options.cache_bytes),
      wait_limit_(options.operation_timeout),
      hang_report_(options.hang_report) {}

bool Engine::execute(Lane& lane, const CollectiveCall& call, CallLookahead* ahead,
                     Staging* staging) {
  lane.attach();
  Operation op(lane, call, rank_, size_, lane.number(), staging);
  op.ahead = ahead;
  Turn turn(lane, op.eager());
  // Peers may have begun or completed an operation to which this rank has posted: it runs to its
  // end.
  if (fault_.raised() && !lane.posted(op.number)) fault_.throw_error();
  RankRecord& record = segment_.own_record();
  record.in_operation.store(lane.ordinal() + 1, std::memory_order_relaxed);
  const bool ended = op.eager() ? run_eager(op) : run_cooperative(op);
  if (!ended) turn.leave();
  record.in_operation.store(0, std::memory_order_relaxed);
  if (op.waiting) record.host_is_waiting.store(0, std::memory_order_relaxed);
  return ended;
}

}  // namespace hccl::node
