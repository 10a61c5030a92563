// SPDX-License-Identifier: Apache-2.0
// Turns messages that a rank sends to itself into copies.
#pragma once

#include "comm/message_list.h"

#include <cstdint>
#include <vector>

namespace hccl::comm {

struct SelfCopy {
  std::uint64_t from = 0, to = 0;  // addresses of device or host memory
  std::uint64_t bytes = 0;
};

// Removes from `calls` the messages that `rank` sends to itself, and pairs their sends and receives
// in order. Returns a SelfCopy for each pair whose addresses differ. Throws
// Error(hcclInternalError), the code that Gaudi's library returns, if the two calls of a pair do
// not match or one call is missing.
[[nodiscard]] std::vector<SelfCopy> pair_self_messages(MessageList& calls, int rank);

}  // namespace hccl::comm
