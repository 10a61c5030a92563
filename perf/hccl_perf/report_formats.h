// SPDX-License-Identifier: Apache-2.0
// The files of results, each in a format of its own.
#pragma once

#include "results.h"

#include <string>

namespace hccl_perf {

// The results as comma-separated values (RFC 4180): a line of names, then one line for each row of
// the table and placement. Empty fields are what was not measured.
[[nodiscard]] std::string csv_text(const Results& results);

// The results as JSON: nanoseconds, all options, all rows.
[[nodiscard]] std::string json_text(const Results& results);

// The file of --raw: the time of every single call on every rank, for statistics of one's own:
// a line of names, then one for each call and rank.
[[nodiscard]] std::string raw_text(const Results& results);

}  // namespace hccl_perf
