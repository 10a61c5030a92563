// SPDX-License-Identifier: Apache-2.0
// Posts a rank's part of an operation: its descriptor and, if it is short, its data.
#pragma once

#include "node/collective_operation.h"
#include "node/node_segment.h"

namespace hccl::node {

// Posts this rank's part to its slot. Throws Error(hcclOutOfMemory).
void post(NodeSegment& node, CollectiveOperation& op);
// Wakes the ranks that sleep on the operation if all have posted.
void ring_if_all_posted(const NodeSegment& node, const CollectiveOperation& op);
// Posts this rank's part of the calls after `op`, so that ranks that share a core need one context
// switch for many operations. Call before waiting.
void prepost(NodeSegment& node, CollectiveOperation& op);

}  // namespace hccl::node
