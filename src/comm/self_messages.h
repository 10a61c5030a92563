// SPDX-License-Identifier: Apache-2.0
// Messages of a rank to itself: copies on its device.
#pragma once

#include "comm/message_list.h"

#include <cstdint>
#include <vector>

namespace hccl::comm {

struct SelfCopy {
  std::uint64_t from = 0, to = 0;  // device addresses
  std::uint64_t bytes = 0;
};

// Takes the sends and receives of `rank` with itself out of `calls`, and pairs them in order.
// Throws Error(hcclInternalError), which is what HCCL returns, if one is left over or differs.
[[nodiscard]] std::vector<SelfCopy> pair_self_messages(MessageList& calls, int rank);

}  // namespace hccl::comm
