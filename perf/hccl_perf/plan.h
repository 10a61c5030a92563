// SPDX-License-Identifier: Apache-2.0
// --plan: describes how a rank would run the call of each row. Nothing is measured.
#pragma once

#include "options.h"
#include "session.h"

#include <string>

namespace hccl_perf {

// Returns the plans of the session's rank, row by row. Throws RunError if the library cannot report
// plans.
[[nodiscard]] std::string plans(const Options& options, const Session& session);

}  // namespace hccl_perf
