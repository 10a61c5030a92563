// SPDX-License-Identifier: Apache-2.0
// Defines the options of nccl-tests and the additional ones of hccl-perf.
#include "written_options.h"

#include "launch_environment.h"
#include "quantities.h"
#include "text.h"

namespace hccl_perf {
namespace {

// An nccl-tests option that hccl-perf accepts only with its neutral value, which scripts often
// pass.
struct NeutralOption {
  const char* names;
  const char* meaning;
  int neutral;
};

constexpr std::uint64_t kMostCalls = std::uint64_t{1} << 32;

constexpr NeutralOption kNeutralOptions[] = {
    {"-m,--agg_iters", "operation aggregation", 1},
    {"-G,--cudagraph", "graph replay", 0},
    {"-C,--report_cputime", "CPU time", 0},
    {"-R,--local_register", "buffer registration", 0},
    {"-S,--report_timestamps", "the time stamp", 0},
    {"-u,--unalign", "buffer misalignment", 0},
    {"-M,--memory_report", "the memory report", 0},
};

void add_size_options(CLI::App& app, Options& options) {
  app.option_defaults()->group("Sizes");
  add_size(app, "-b,--minbytes", options.min_bytes, "first size (32M)");
  add_size(app, "-e,--maxbytes", options.max_bytes, "last size (32M)");
  add_size(app, "-i,--stepbytes", options.step_bytes, "step between sizes (1M)");
  add_number(app, "-f,--stepfactor", options.step_factor, {1, std::uint64_t{1} << 40},
             "factor between sizes, instead of a step");
}

void add_rank_options(CLI::App& app, Options& options, Written& written) {
  app.option_defaults()->group("Ranks");
  add_number(app, "-g,--ngpus", options.processes, {1, 1024},
             "processes to start on this machine, in rank order (1)");
  add_number(app, "-t,--nthreads", options.threads, {1, 64},
             "ranks per process, each with a thread and a device (1)");
  add_number(app, "--nodes", options.nodes, {1, 1024},
             "nodes to emulate, each a block of consecutive -g processes (1)");
  app.add_flag("--standalone", options.standalone,
               "ignore the environment variables that launchers set");
  add_number(app, "-p,--parallel_init", written.parallel_init, {0, 1},
             "accepted: ranks always join in parallel, as with -p 1 of nccl-tests (1)", "0|1");
}

void add_operation_options(CLI::App& app, Options& options, Written& written) {
  app.option_defaults()->group("Operation");
  app.add_option("-d,--datatype,--data_type", options.type_name,
                 accepted_data_types() + " or all (float)")
      ->type_name("TYPE");
  app.add_option("-o,--op,--reduction_op", options.reduction_name,
                 "sum, prod, min, max, avg or all; for integers also bitand, bitor or bitxor (sum)")
      ->type_name("OP");
  app.add_option("-r,--root,--test_root", written.root, "root rank, or all (0)")->type_name("RANK");
}

void add_timing_options(CLI::App& app, Options& options, Written& written) {
  app.option_defaults()->group("Measurement");
  add_number(app, "-n,--iters,--loop", options.iterations, {1, kMostCalls},
             "timed iterations, queued back to back (20)");
  add_number(app, "-w,--warmup_iters", options.warmup, {0, kMostCalls},
             "iterations before the clock starts (1)");
  add_number(app, "--min-time", options.min_time, {0, 3600},
             "time each cell for at least this long (0: -n alone decides)", "SECONDS");
  add_number(app, "--repeats", written.repeats, {1, 10000},
             "timed passes per cell; the median is reported (1; 7 with --json, --compare)");
  add_number(app, "-z,--blocking", written.blocking, {0, 3},
             "after each call: 0 nothing, 1 wait and barrier, 2 wait, 3 same as 1 (0)", "0-3");
  add_number(app, "-N,--run_cycles", options.cycles, {0, kMostCalls},
             "number of sweeps; 0: endless (1)");
  add_number(app, "-a,--average", written.averaging, {0, 3},
             "time shown: 0 rank 0, 1 mean, 2 min, 3 max of the ranks (1)", "0-3");
  add_number(app, "-c,--check", options.checks, {0, kMostCalls},
             "checked runs per cell; 0: none (1)");
  app.add_flag("--latency", options.latency,
               "after each row: latency of call + synchronise, with percentiles");
  app.add_flag("--overlap", options.overlap,
               "after each row: the share of a call that computation on the host hides");
  add_number(app, "-I", written.latency, {0, 1}, "1: the same as --latency")->group("");
  add_number(app, "--latency-iters", options.latency_iterations, {1, std::uint64_t{1} << 20},
             "maximum number of calls in the latency pass (100)");
}

void add_result_options(CLI::App& app, Options& options) {
  app.option_defaults()->group("Results");
  const auto add_file = [&](const char* names, std::string& path, const char* description) {
    app.add_option(names, path, description)->type_name("FILE");
  };
  add_file("-J,--json", options.json_path, "write all results, in nanoseconds, to this file");
  add_file("--csv,--result_csv", options.csv_path, "write the table's values to this file");
  add_file("--raw", options.raw_path,
           "write the time of every call on every rank to this CSV file");
  add_file("--compare", options.baseline_path,
           "compare each cell with this --json file of an earlier run");
  add_number(app, "--compare-threshold", options.compare_threshold, {0, 1000},
             "count only changes larger than this (10)", "PERCENT");
}

void add_run_options(CLI::App& app, Options& options, Written& written) {
  app.option_defaults()->group("Run");
  const auto add_plan = [&](const char* name, bool json, const char* description) {
    app.add_option_function<int>(
           name,
           [&options, json](const int& rank) {
             options.plan_rank = rank;
             options.plan_json = json;
           },
           description)
        ->type_name("RANK")
        ->check(range(0, kMostRanks - 1));
  };
  add_plan("--plan", false, "measure nothing; print this rank's steps for each row's call");
  add_plan("--plan-json", true, "like --plan, but as JSON, one object per line");
  app.add_option(
         "-T,--timeout", written.timeout,
         "end the run after this time (30, 30s, 5m) and name the ranks that have not finished "
         "(0: never)")
      ->type_name("SECONDS");
  app.get_help_ptr()->group("Run")->description("show this help and exit");
  app.set_version_flag("--version", text("hccl-perf ", HCCL_PERF_VERSION))
      ->description("show the version and exit");
}

// Adds the options that are accepted only with their neutral value.
void add_neutral_options(CLI::App& app) {
  app.option_defaults()->group("");
  for (const NeutralOption& option : kNeutralOptions) {
    app.add_option_function<int>(option.names, [&option](const int& value) {
      if (value == option.neutral) return;
      const std::string letter(option.names, 2);
      throw CLI::ValidationError(
          letter, text(option.meaning, " of nccl-tests is not supported; leave ", letter,
                       " out or give ", option.neutral));
    });
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
                 "the collective or message test; not needed if the program's name selects it");
  add_size_options(app, options);
  add_rank_options(app, options, written);
  add_operation_options(app, options, written);
  add_timing_options(app, options, written);
  add_result_options(app, options);
  add_run_options(app, options, written);
  add_neutral_options(app);
}

}  // namespace hccl_perf
