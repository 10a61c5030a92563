// SPDX-License-Identifier: Apache-2.0
// Starts the ranks with hccl-perf's launcher.
#include "processes.h"

#include "launcher.h"
#include "report_error.h"
#include "session.h"
#include "text.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <sys/prctl.h>

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

int main_of_driver(const char* program, int argc, char** argv,
                   const std::function<int(int ranks)>& run_ranks) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int ranks = argc == 2 ? std::atoi(argv[1]) : 0;
  if (ranks < 2 || ranks > kMaxRanks) {
    std::fprintf(stderr, "usage: %s RANKS, with one command per line on standard input\n", program);
    return 2;
  }
  try {
    return run_ranks(ranks);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 1;
  }
}

}  // namespace peers
