// SPDX-License-Identifier: Apache-2.0
// The table on stdout, with the header, columns and footer of nccl-tests. Each row ends with two
// more columns, for the algorithm and the transport.
#pragma once

#include "options.h"
#include "row.h"

#include <string>
#include <vector>

namespace hccl_perf {

// These functions return whole lines. `library` is the library's version.
[[nodiscard]] std::string table_header(const Options& options, int library,
                                       const std::vector<RankFacts>& ranks);
[[nodiscard]] std::string table_row(const Row& row, const Options& options);
[[nodiscard]] std::string table_footer(const Totals& totals);

}  // namespace hccl_perf
