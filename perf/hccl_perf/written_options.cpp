// SPDX-License-Identifier: Apache-2.0
// The options of nccl-tests and our own.
#include "written_options.h"

#include "launch_environment.h"
#include "quantities.h"
#include "text.h"

namespace hccl_perf {
namespace {

// An option of nccl-tests that only makes sense here with its neutral value, which scripts pass
// habitually.
struct NeutralOption {
  const char* names;
  const char* meaning;
  int neutral;
};

constexpr NeutralOption kNeutralOptions[] = {
    {"-m,--agg_iters", "aggregated operations", 1},
    {"-G,--cudagraph", "graph replays", 0},
    {"-C,--report_cputime", "CPU time", 0},
    {"-R,--local_register", "buffer registration", 0},
    {"-S,--report_timestamps", "time stamps", 0},
    {"-u,--unalign", "misaligned buffers", 0},
    {"-M,--memory_report", "memory report", 0},
};

void add_size_options(CLI::App& app, Options& options) {
  const char* group = "Sizes";
  add_size(app, "-b,--minbytes", options.min_bytes, "first size (32M)")->group(group);
  add_size(app, "-e,--maxbytes", options.max_bytes, "last size (32M)")->group(group);
  add_size(app, "-i,--stepbytes", options.step_bytes, "added from size to size (1M)")->group(group);
  app.add_option("-f,--stepfactor", options.step_factor, "multiplied from size to size instead")
      ->type_name("N")
      ->check(range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->group(group);
}

void add_rank_options(CLI::App& app, Options& options, Written& written) {
  const char* group = "Ranks";
  app.add_option("-g,--ngpus", options.processes,
                 "processes to start on this machine; the i-th is rank i (1)")
      ->type_name("N")
      ->check(range(1, 1024))
      ->group(group);
  app.add_option("-t,--nthreads", options.threads,
                 "ranks per process, a thread and a device each (1)")
      ->type_name("N")
      ->check(range(1, 64))
      ->group(group);
  app.add_option("--nodes", options.nodes,
                 "emulate this many nodes: the processes of -g in as many blocks (1)")
      ->type_name("N")
      ->check(range(1, 1024))
      ->group(group);
  app.add_flag("--standalone", options.standalone, "do not look for a launcher's variables")
      ->group(group);
  app.add_option("-p,--parallel_init", written.parallel_init,
                 "accepted: ranks always join in parallel, as with -p 1 of nccl-tests (1)")
      ->type_name("0|1")
      ->check(range(0, 1))
      ->group(group);
}

void add_operation_options(CLI::App& app, Options& options, Written& written) {
  const char* group = "Operation";
  app.add_option("-d,--datatype,--data_type", options.type_name,
                 accepted_data_types() + " or all (float)")
      ->type_name("TYPE")
      ->group(group);
  app.add_option("-o,--op,--reduction_op", options.reduction_name,
                 "sum, prod, min, max, avg or all (sum)")
      ->type_name("OP")
      ->group(group);
  app.add_option("-r,--root,--test_root", written.root, "root rank, or all (0)")
      ->type_name("RANK")
      ->group(group);
}

void add_timing_options(CLI::App& app, Options& options, Written& written) {
  const char* group = "Measurement";
  const std::uint64_t most = std::uint64_t{1} << 32;
  app.add_option("-n,--iters,--loop", options.iterations,
                 "timed iterations, queued back to back (20)")
      ->type_name("N")
      ->check(range(std::uint64_t{1}, most))
      ->group(group);
  app.add_option("-w,--warmup_iters", options.warmup, "iterations before the clock starts (1)")
      ->type_name("N")
      ->check(range(std::uint64_t{0}, most))
      ->group(group);
  app.add_option("--min-time", options.min_time,
                 "time each cell for at least this long (0: -n alone decides)")
      ->type_name("SECONDS")
      ->check(range(0.0, 3600.0))
      ->group(group);
  app.add_option("--repeats", written.repeats,
                 "timed passes per cell, of which the median counts (1; 7 with --json, --compare)")
      ->type_name("N")
      ->check(range(std::uint64_t{1}, std::uint64_t{10000}))
      ->group(group);
  app.add_option("-z,--blocking", written.blocking,
                 "after each call: 0 nothing, 1 wait and barrier, 2 wait, 3 as 1 (0)")
      ->type_name("0-3")
      ->check(range(0, 3))
      ->group(group);
  app.add_option("-N,--run_cycles", options.cycles, "repeat the whole sweep; 0: for ever (1)")
      ->type_name("N")
      ->check(range(std::uint64_t{0}, most))
      ->group(group);
  app.add_option("-a,--average", written.averaging,
                 "time shown: 0 rank 0, 1 mean, 2 min, 3 max of the ranks (1)")
      ->type_name("0-3")
      ->check(range(0, 3))
      ->group(group);
}

void add_check_options(CLI::App& app, Options& options, Written& written) {
  const char* group = "Measurement";
  app.add_option("-c,--check", options.checks, "checked runs per cell; 0: none (1)")
      ->type_name("N")
      ->check(range(std::uint64_t{0}, std::uint64_t{1} << 32))
      ->group(group);
  app.add_flag("--latency", options.latency,
               "after each row: latency of call + synchronise, with percentiles")
      ->group(group);
  app.add_flag("--overlap", options.overlap,
               "after each row: how much of a call is hidden behind computing on the host")
      ->group(group);
  app.add_option("-I", written.latency, "1: the same as --latency")->check(range(0, 1))->group("");
  app.add_option("--latency-iters", options.latency_iterations,
                 "calls of the latency pass at most (100)")
      ->type_name("N")
      ->check(range(std::uint64_t{1}, std::uint64_t{1} << 20))
      ->group(group);
}

void add_result_options(CLI::App& app, Options& options) {
  const char* group = "Results";
  app.add_option("-J,--json", options.json_path, "write everything, in nanoseconds, to this file")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--csv,--result_csv", options.csv_path, "write the table's values to this file")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--raw", options.raw_path,
                 "write the time of every call on every rank to this CSV file")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--compare", options.baseline_path,
                 "judge each cell against this --json file of an earlier run")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--compare-threshold", options.compare_threshold,
                 "change of a time that counts (10)")
      ->type_name("PERCENT")
      ->check(range(0.0, 1000.0))
      ->group(group);
}

void add_plan_options(CLI::App& app, Options& options) {
  const char* group = "Run";
  const auto add = [&](const char* name, bool json, const char* description) {
    app.add_option_function<int>(
           name,
           [&options, json](const int& rank) {
             options.plan_rank = rank;
             options.plan_json = json;
           },
           description)
        ->type_name("RANK")
        ->check(range(0, kMostRanks - 1))
        ->group(group);
  };
  add("--plan", false, "measure nothing: print the steps of this rank for each row's call");
  add("--plan-json", true, "the same as a JSON object on a line");
}

void add_run_options(CLI::App& app, Written& written) {
  const char* group = "Run";
  app.add_option("-T,--timeout", written.timeout,
                 "end the run after this time (30, 30s, 5m) and name the ranks that are not done "
                 "(0: never)")
      ->type_name("SECONDS")
      ->group(group);
  app.get_help_ptr()->group(group)->description("show this and exit");
  app.set_version_flag("--version", text("hccl-perf ", HCCL_PERF_VERSION))
      ->group(group)
      ->description("show the version and exit");
}

// Accepts the neutral values of options that are otherwise not supported, and names the option in
// the error.
void add_neutral_options(CLI::App& app) {
  for (const NeutralOption& option : kNeutralOptions) {
    app.add_option_function<int>(option.names,
                                 [&option](const int& value) {
                                   if (value == option.neutral) return;
                                   const std::string letter(option.names, 2);
                                   throw CLI::ValidationError(
                                       letter,
                                       text(option.meaning, " of nccl-tests: not supported; leave ",
                                            letter, " out or give ", option.neutral));
                                 })
        ->group("");
  }
}

}  // namespace

CLI::Option* add_size(CLI::App& app, const std::string& names, std::uint64_t& value,
                      const std::string& description) {
  return app
      .add_option_function<std::string>(
          names,
          [names, &value](const std::string& written) {
            try {
              value = parse_bytes(written);
            } catch (const UsageError& error) {
              throw CLI::ValidationError(names, error.what());
            }
          },
          description)
      ->type_name("SIZE");
}

void add_options(CLI::App& app, Options& options, Written& written) {
  app.add_option("collective", written.collective,
                 "what to run, unless the program's name says it");
  add_size_options(app, options);
  add_rank_options(app, options, written);
  add_operation_options(app, options, written);
  add_timing_options(app, options, written);
  add_check_options(app, options, written);
  add_result_options(app, options);
  add_plan_options(app, options);
  add_run_options(app, written);
  add_neutral_options(app);
}

}  // namespace hccl_perf
