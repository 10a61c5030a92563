// SPDX-License-Identifier: Apache-2.0
// hccl-perf: measures and checks the collectives of HCCL. Under a launcher and without
// --standalone, it is one of the processes of the job. Otherwise it starts its own processes (-g).
#include "baseline.h"
#include "board.h"
#include "id_exchange.h"
#include "id_once.h"
#include "launch_environment.h"
#include "launcher.h"
#include "options.h"
#include "peer_watch.h"
#include "pmix_client.h"
#include "rank_program.h"
#include "report_error.h"
#include "report_file.h"
#include "text.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

namespace hccl_perf {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kSlower = 3;

// The ranks of one process, and their position in the run.
struct ProcessPlace {
  int first_rank = 0;
  int ranks = 1;
  int first_local_rank = 0;
  bool supervised = false;  // whether an hccl-perf parent supervises the process
  int notice = -1;
  double timeout = 0;
  const Baseline* baseline = nullptr;
};

// Checks the result files and the baseline before anything is measured. Throws UsageError.
std::optional<Baseline> prepare_results(const Options& options, int ranks) {
  if (!options.json_path.empty()) require_writable("--json", options.json_path);
  if (!options.csv_path.empty()) require_writable("--csv", options.csv_path);
  if (!options.raw_path.empty()) require_writable("--raw", options.raw_path);
  if (options.baseline_path.empty()) return std::nullopt;
  Baseline baseline = read_baseline(options.baseline_path);
  require_comparable(baseline, options, ranks);
  return baseline;
}

int exit_status(const std::vector<RankOutcome>& outcomes) {
  int status = EXIT_SUCCESS;
  for (const RankOutcome& outcome : outcomes) {
    if (outcome.wrong > 0) return kFailed;
    if (outcome.slower) status = kSlower;
  }
  return status;
}

// Runs this process's ranks, each on its own thread. Returns the exit status.
int run_ranks(const Options& options, const ProcessPlace& place, Board& board,
              const IdExchange& exchange) {
  PeerWatch watch(board, place.first_rank, options.threads, place.notice, place.timeout);
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(options.threads));
  IdOnce id(exchange, place.first_rank == 0);
  const auto run = [&](int index) {
    const int rank = place.first_rank + index;
    try {
      const RankPlace mine{rank, place.ranks, place.first_local_rank + index, place.supervised,
                           place.baseline};
      outcomes[static_cast<std::size_t>(index)] =
          run_rank(options, mine, board, [&id] { return id.get(); });
    } catch (const std::exception& error) {
      fail_rank(board, rank, place.supervised, error.what());
    }
  };
  try {
    Runtime runtime;
    std::vector<std::thread> others;
    for (int index = 1; index < options.threads; ++index) others.emplace_back(run, index);
    run(0);
    for (std::thread& thread : others) thread.join();
    runtime.finish();
  } catch (const std::exception& error) {
    fail_rank(board, place.first_rank, place.supervised, error.what());
  }
  for (int index = 0; index < options.threads; ++index)
    board.record(place.first_rank + index).finished = true;
  return exit_status(outcomes);
}

// Throws UsageError if --nodes would overwrite an HCCL_NODE_ID that the user has set.
void require_own_node_names(const Options& options) {
  const char* name = value_of(&std::getenv, "HCCL_NODE_ID");
  if (options.nodes == 1 || name == nullptr) return;
  throw UsageError(text("--nodes ", options.nodes,
                        " sets HCCL_NODE_ID for each process, but it is "
                        "already set to '",
                        name, "'; unset it or leave --nodes out"));
}

// Starts the ranks as children of this process (-g). Returns the exit status.
int run_here(const Options& options) {
  const int ranks = options.processes * options.threads;
  require_own_node_names(options);
  require_ranks(options, ranks);
  require_memory(options, ranks, ranks, true);
  const std::optional<Baseline> baseline = prepare_results(options, ranks);
  Board board(ranks, shared_expected_bytes(options));
  const LaunchPlan plan{options.processes, options.threads, options.timeout, 0, options.nodes};
  return launch(plan, board, [&](const ChildLinks& links) {
    const int node = node_of_process(links.process, options.processes, options.nodes);
    const int first_here = first_process_of_node(node, options.processes, options.nodes);
    const ProcessPlace place{links.process * options.threads,
                             ranks,
                             (links.process - first_here) * options.threads,
                             true,
                             links.notice,
                             0,
                             baseline ? &*baseline : nullptr};
    return run_ranks(options, place, board, exchange_by_pipe(*links.id, options.processes - 1));
  });
}

// Throws UsageError if the options do not fit the launcher's job. If every node runs the same
// number of processes, either all processes of the job throw, or none does.
void require_launchable(const Options& options, const LaunchEnvironment& launch) {
  if (options.processes_given && options.processes > 1) {
    throw UsageError(text("-g ", options.processes, " starts processes, but ", launch.launcher,
                          " has already started them; leave -g out, use -t for several ranks per "
                          "process, or give --standalone"));
  }
  require_communicator(launch, options.threads);
  require_ranks(options, launch.size * options.threads);
}

// Runs as one process of a launched job. Returns the exit status.
int run_launched(const Options& options, LaunchEnvironment launch) {
  if (launch.size == 0) launch.size = PmixClient().job_size();
  try {
    require_launchable(options, launch);
  } catch (const UsageError&) {
    // Rank 0 reports the error, unless only other nodes have too many processes.
    const bool is_of_node = launch.local_size * options.threads > kMostRanksOfNode;
    if (launch.rank == 0 || (is_of_node && launch.local_rank == 0)) throw;
    return kUsage;
  }
  const int ranks = launch.size * options.threads;
  const int local = (launch.local_size > 0 ? launch.local_size : 1) * options.threads;
  const int first = launch.rank * options.threads;
  if (first == 0 || launch.local_size <= 0) require_memory(options, ranks, local, false);
  std::optional<Baseline> baseline;
  if (first == 0) baseline = prepare_results(options, ranks);
  Board board(ranks, 0);
  const int local_rank = launch.local_rank >= 0 ? launch.local_rank : launch.rank;
  const ProcessPlace place{first, ranks,           local_rank * options.threads,   false,
                           -1,    options.timeout, baseline ? &*baseline : nullptr};
  return run_ranks(options, place, board, exchange_between_launched(launch, &std::getenv));
}

int run_program(int argc, char** argv) {
  const auto parsed = parse_options(argc, argv);
  if (const Text* shown = std::get_if<Text>(&parsed)) {
    const bool written = std::fputs(shown->text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    if (!written) throw RunError(text("cannot write to stdout: ", std::strerror(errno)));
    return EXIT_SUCCESS;
  }
  const Options& options = std::get<Options>(parsed);
  std::optional<LaunchEnvironment> launch;
  if (!options.standalone) launch = find_launcher(&std::getenv);
  return launch ? run_launched(options, *launch) : run_here(options);
}

}  // namespace
}  // namespace hccl_perf

int main(int argc, char** argv) {
  try {
    return hccl_perf::run_program(argc, argv);
  } catch (const hccl_perf::UsageError& error) {
    hccl_perf::report_error(error.what());
    return hccl_perf::kUsage;
  } catch (const std::exception& error) {
    hccl_perf::report_error(error.what());
    return hccl_perf::kFailed;
  }
}
