// SPDX-License-Identifier: Apache-2.0
// Ranks as people read them: "rank 3" or "ranks 0-2,5".
#pragma once

#include <string>
#include <vector>

namespace hccl::bootstrap {

// `ranks` ascending.
[[nodiscard]] std::string rank_list(const std::vector<int>& ranks);

}  // namespace hccl::bootstrap
