// SPDX-License-Identifier: Apache-2.0
// Posts a rank's part of an operation: the descriptor and, if posts_data(), the data.
#pragma once

#include "node/collective_operation.h"
#include "node/node_segment.h"

namespace hccl::node {

// Posts this rank's part of the operation to the rank's slot. Throws Error.
void post(NodeSegment& node, CollectiveOperation& op);
// If all ranks have posted their part of the operation, wakes the sleepers on the lane's bell.
void ring_if_all_posted(const NodeSegment& node, const CollectiveOperation& op);
// Posts this rank's part of the calls after `op` that can be posted ahead of their turn. Ranks that
// share a core then need only one context switch for several operations. Call before waiting.
void prepost(NodeSegment& node, CollectiveOperation& op);

}  // namespace hccl::node
