// SPDX-License-Identifier: Apache-2.0
// The results as JSON: nanoseconds, all options, all rows.
#pragma once

#include "results.h"

#include <string>

namespace hccl_perf {

[[nodiscard]] std::string json_text(const Results& results);

}  // namespace hccl_perf
