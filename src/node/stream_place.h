// SPDX-License-Identifier: Apache-2.0
// The position of sends and receives in their stream.
#pragma once

#include <cstdint>

namespace hccl::node {

class Lane;
class PendingMessages;

// The place of a group of sends and receives in the order of its stream: directly before the next
// collective on the stream's lane.
struct StreamPlace {
  std::uint32_t ordinal = 0;           // of the stream's lane, or of the lane it would get
  const Lane* lane = nullptr;          // null if no collective has been queued on the stream
  PendingMessages* pending = nullptr;  // exclusive to this stream and communicator
};

}  // namespace hccl::node
