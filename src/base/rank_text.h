// SPDX-License-Identifier: Apache-2.0
// Names ranks in messages: "rank 3", "ranks 0-2,5", "rank 3 (pid 4242, host a)".
#pragma once

#include <string>
#include <vector>

namespace hccl {

// Returns "rank 3" or "ranks 0-2,5". `ranks` must be in ascending order.
[[nodiscard]] std::string rank_list(const std::vector<int>& ranks);

// Returns "rank 3 (pid 4242, host a)".
[[nodiscard]] std::string rank_text(int rank, int pid, const std::string& host);

}  // namespace hccl
