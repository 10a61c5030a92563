// SPDX-License-Identifier: Apache-2.0
// Prints and writes results.
#include "reporter.h"

#include "comparison.h"
#include "quantities.h"
#include "report_file.h"
#include "report_formats.h"
#include "table.h"
#include "text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <unistd.h>

namespace hccl_perf {

Reporter::Reporter(const Options& options, const Baseline* baseline,
                   const std::vector<RankFacts>& ranks)
    : options_(options),
      baseline_(baseline),
      results_{options,
               {library_version(), library_release(), library_path()},
               ranks,
               host_facts(),
               hccl_variables(environ),
               std::chrono::system_clock::now(),
               {},
               {}} {
  print(table_header(options, results_.library.version, ranks));
}

void Reporter::announce(Phase phase, std::uint64_t bytes) {
  progress_.show(text(phase_name(phase), " ", format_bytes(bytes), " ..."));
}

void Reporter::row(const Row& row) {
  results_.totals.add(row, options_.averaging);
  print(table_row(row, options_));
  // Stores rows only if needed, because an endless run (-N 0) would store them without limit.
  if (options_.wants_results()) results_.rows.push_back(row);
}

void Reporter::finish() {
  print(table_footer(results_.totals));
  if (!options_.json_path.empty()) write_report("--json", options_.json_path, json_text(results_));
  if (!options_.csv_path.empty()) write_report("--csv", options_.csv_path, csv_text(results_));
  if (!options_.raw_path.empty()) write_report("--raw", options_.raw_path, raw_text(results_));
  if (baseline_ == nullptr) return;
  const Comparison comparison(*baseline_, results_);
  print(comparison.to_text());
  slower_ = comparison.count(Verdict::slower) > 0;
}

void Reporter::print(const std::string& lines) {
  progress_.clear();
  std::fwrite(lines.data(), 1, lines.size(), stdout);
  if (std::fflush(stdout) != 0)
    throw RunError(text("cannot write the table: ", std::strerror(errno)));
}

}  // namespace hccl_perf
