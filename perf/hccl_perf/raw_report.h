// SPDX-License-Identifier: Apache-2.0
// The file of --raw: the time of every single call on every rank, for statistics of one's own.
#pragma once

#include "results.h"

#include <string>

namespace hccl_perf {

// A line of names, then one for each call and rank.
[[nodiscard]] std::string raw_text(const Results& results);

}  // namespace hccl_perf
