// SPDX-License-Identifier: Apache-2.0
// Formats the result files.
#pragma once

#include "results.h"

#include <string>

namespace hccl_perf {

// Returns the results as comma-separated values, quoted as in RFC 4180: a line of names, then one
// line for each measured placement of each row of the table. Fields that were not measured are
// empty.
[[nodiscard]] std::string csv_text(const Results& results);

// Returns the results as JSON: the facts about the run and all rows. Measured times are in
// nanoseconds.
[[nodiscard]] std::string json_text(const Results& results);

// Returns the contents of the --raw file: a line of names, then one line for each time in RawTimes.
[[nodiscard]] std::string raw_text(const Results& results);

}  // namespace hccl_perf
