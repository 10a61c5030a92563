// SPDX-License-Identifier: Apache-2.0
// Starts the ranks with hccl-perf's launcher.
#include "processes.h"

#include "launcher.h"
#include "report_error.h"
#include "text.h"

#include <cstdlib>
#include <exception>

namespace peers {

int run_processes(const char* program, int ranks,
                  const std::function<std::uint64_t(int rank)>& serve_rank) {
  hccl_perf::set_program_name(program);
  hccl_perf::Board board(ranks, 0);
  return hccl_perf::launch({ranks}, board, [&](const hccl_perf::ChildLinks& links) {
    hccl_perf::RankRecord& record = board.record(links.process);
    try {
      const bool right = serve_rank(links.process) == 0;
      record.finished = true;
      return right ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception& error) {
      hccl_perf::report_error(hccl_perf::text("rank ", links.process, ": ", error.what()));
      record.reported = true;
      return EXIT_FAILURE;
    }
  });
}

}  // namespace peers
