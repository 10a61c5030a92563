// SPDX-License-Identifier: Apache-2.0
// Turns a rank's messages to itself into copies.
#pragma once

#include "comm/message_list.h"

#include <cstdint>
#include <vector>

namespace hccl::comm {

struct SelfCopy {
  std::uint64_t from = 0, to = 0;  // addresses of device or host memory
  std::uint64_t bytes = 0;
};

// Removes from `calls` the sends of `rank` to itself and its receives from itself, pairs them in
// order, and returns a copy for each pair with different addresses. Throws
// Error(hcclInternalError), the code that Gaudi's library returns, if a send or a receive has no
// partner or differs from its partner.
[[nodiscard]] std::vector<SelfCopy> pair_self_messages(MessageList& calls, int rank);

}  // namespace hccl::comm
