// SPDX-License-Identifier: Apache-2.0
// The results as comma-separated values (RFC 4180): a line of names, then one line for each row of
// the table and placement. Empty fields are what was not measured.
#pragma once

#include "results.h"

#include <string>

namespace hccl_perf {

[[nodiscard]] std::string csv_text(const Results& results);

}  // namespace hccl_perf
