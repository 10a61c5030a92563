// SPDX-License-Identifier: Apache-2.0
// ddp_trainer: starts its own processes (-g), or runs as one of the processes of a launcher.
#include "board.h"
#include "errors.h"
#include "id_exchange.h"
#include "launch_environment.h"
#include "launcher.h"
#include "node_share.h"
#include "options.h"
#include "peer_watch.h"
#include "pmix_client.h"
#include "rank_program.h"
#include "report_error.h"
#include "report_file.h"

#include <cstdio>
#include <cstdlib>
#include <optional>

namespace ddp_trainer {
namespace {

constexpr int kUsage = 2;

hcclUniqueId unique_id(const hccl_perf::IdExchange& exchange, bool is_root) {
  if (!is_root) return exchange(std::nullopt);
  hcclUniqueId id{};
  check(hcclGetUniqueId(&id), "hcclGetUniqueId");
  return exchange(id);
}

void require_writable_files(const Options& options) {
  std::vector<hccl_perf::NamedReport> files = {{"--checkpoint", options.checkpoint_path},
                                               {"--trace", options.trace_path},
                                               {"--json", options.json_path}};
  for (const auto& [option, path] : files) {
    if (!path.empty()) hccl_perf::require_writable(option, path);
  }
  files.push_back({"--data", options.data_path});
  hccl_perf::require_distinct(files);
}

// Reads the inputs on the first call, and returns the same inputs on later calls. With
// `has_rank_0`, the first call first checks that the output files are writable and that no two
// options name the same file.
class Reader {
 public:
  Reader(const Options& options, int ranks, bool has_rank_0)
      : options_(options), ranks_(ranks), has_rank_0_(has_rank_0) {}

  const Inputs& operator()() {
    if (!inputs_ && has_rank_0_) require_writable_files(options_);
    if (!inputs_) inputs_.emplace(read_inputs(options_, ranks_));
    return *inputs_;
  }

 private:
  const Options& options_;
  int ranks_;
  bool has_rank_0_;
  std::optional<Inputs> inputs_;
};

// Ends the process after an error that all ranks share. Reports the error if this rank has local
// rank 0.
[[noreturn]] void end_together(hccl_perf::Board& board, const Place& place, const char* what) {
  board.record(place.rank).reported = true;
  if (place.local_rank == 0) hccl_perf::report_error(what);
  std::_Exit(EXIT_FAILURE);
}

// Runs a rank. Returns only if the rank has succeeded.
void run(const Options& options, const ReadInputs& read, const Place& place,
         hccl_perf::Board& board, bool supervised, const hccl_perf::IdExchange& exchange) {
  try {
    run_rank(options, read, place, [&] { return unique_id(exchange, place.rank == 0); });
  } catch (const SharedError& error) {
    end_together(board, place, error.what());
  } catch (const std::exception& error) {
    hccl_perf::fail_rank(board, place.rank, supervised, error.what());
  }
  board.record(place.rank).finished = true;
}

// Sets HCCL_COMM_ID to the address in MASTER_ADDR and MASTER_PORT, unless HCCL_COMM_ID is already
// set or one of the other two is not.
void meet_at_master() {
  const std::string address = master_address(&std::getenv);
  if (hccl_perf::value_of(&std::getenv, "HCCL_COMM_ID") == nullptr && !address.empty())
    setenv("HCCL_COMM_ID", address.c_str(), 1);
}

// Returns an exchange that sends nothing, because the ranks meet at the address in HCCL_COMM_ID.
// Throws UsageError if HCCL_COMM_ID is not set.
hccl_perf::IdExchange exchange_by_address() {
  if (hccl_perf::value_of(&std::getenv, "HCCL_COMM_ID") == nullptr) {
    throw UsageError(
        "ranks on several nodes need an address at which to meet; set MASTER_ADDR and MASTER_PORT, "
        "or HCCL_COMM_ID");
  }
  return [](const std::optional<hcclUniqueId>& mine) { return mine.value_or(hcclUniqueId{}); };
}

// Runs the ranks as children of this process (-g). Returns the exit status.
int run_here(const Options& options) {
  const NodeShare share = node_share(options, &std::getenv);
  if (!share.is_all()) meet_at_master();
  std::optional<hccl_perf::IdExchange> at_address;
  if (!share.is_all()) at_address = exchange_by_address();
  Reader reader(options, share.ranks, share.first == 0);
  if (share.is_all()) reader();  // before the fork, so that an error is reported once
  hccl_perf::Board board(share.ranks, 0);
  const hccl_perf::LaunchPlan plan{share.here, 1, 0, share.first};
  return hccl_perf::launch(plan, board, [&](const hccl_perf::ChildLinks& links) {
    const int rank = share.first + links.process;
    const hccl_perf::PeerWatch watch(board, rank, 1, links.notice, 0);
    run(options, std::ref(reader), {rank, share.ranks, links.process}, board, true,
        at_address ? *at_address : hccl_perf::exchange_by_pipe(*links.id, share.here - 1));
    return EXIT_SUCCESS;
  });
}

// Runs as one process of a launcher. Returns the exit status. If torchrun's variables are set but
// torchrun's agent is not running, calls meet_at_master(). A running agent occupies the master's
// address.
int run_launched(const Options& options, hccl_perf::LaunchEnvironment launch) {
  if (options.processes_given && options.processes > 1) {
    throw UsageError(text("-g ", options.processes, " starts processes, but ", launch.launcher,
                          " has already started them; omit -g"));
  }
  if (launch.size == 0) launch.size = hccl_perf::PmixClient().job_size();
  const bool has_agent = hccl_perf::value_of(&std::getenv, "TORCHELASTIC_RUN_ID") != nullptr;
  if (launch.launcher == "torchrun" && !has_agent) meet_at_master();
  Reader reader(options, launch.size, launch.rank == 0);
  hccl_perf::Board board(launch.size, 0);
  const int local_rank = launch.local_rank >= 0 ? launch.local_rank : launch.rank;
  run(options, std::ref(reader), {launch.rank, launch.size, local_rank}, board, false,
      hccl_perf::exchange_between_launched(launch, &std::getenv));
  return EXIT_SUCCESS;
}

// Returns whether this process prints the help and reports errors that occur before the ranks have
// joined. In a job of mpirun or srun, all ranks have the same command line, so only rank 0 does
// this. Ranks with torchrun's variables may have been started one by one, so each of them does.
bool is_spokesman(const std::optional<hccl_perf::LaunchEnvironment>& launch) {
  return !launch || launch->rank == 0 || launch->launcher == "torchrun";
}

int run_program(int argc, char** argv) {
  hccl_perf::set_program_name("ddp_trainer");
  std::optional<hccl_perf::LaunchEnvironment> launch;
  try {
    launch = hccl_perf::find_launcher(&std::getenv);
    const auto parsed = parse_options(argc, argv);
    if (const auto* help = std::get_if<HelpText>(&parsed)) {
      if (is_spokesman(launch)) std::fputs(help->text.c_str(), stdout);
      return EXIT_SUCCESS;
    }
    const auto& options = std::get<Options>(parsed);
    return launch ? run_launched(options, *launch) : run_here(options);
  } catch (const UsageError& error) {
    if (is_spokesman(launch)) hccl_perf::report_error(error.what());
    return kUsage;
  } catch (const std::exception& error) {
    if (is_spokesman(launch)) hccl_perf::report_error(error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace
}  // namespace ddp_trainer

int main(int argc, char** argv) { return ddp_trainer::run_program(argc, argv); }
