// SPDX-License-Identifier: Apache-2.0
// Command line parsing with CLI11.
#include "options.h"

#include "quantities.h"
#include "text.h"

#include <algorithm>
#include <functional>

#include <CLI/CLI.hpp>

namespace hccl_perf {
namespace {

constexpr const char* kExamples = R"(Examples:
  hccl-perf all_reduce -g 8 -b 8 -e 64M -f 2       8 processes on this machine, no launcher
  hccl-perf reduce_scatter -g 4 -d all -o all      every type and reduction at 32 MiB
  hccl-perf broadcast -g 8 -r all --json out.json  every root; nanoseconds into a file
  mpirun -np 4 hccl-perf all_reduce -b 1K -e 1M    one rank per launched process
  all_reduce_perf -g 2 -t 4                        the names of nccl-tests; 2 processes x 4 threads

Exit status: 0 all data right, 1 wrong data or a failed rank, 2 bad arguments.)";

// An option of nccl-tests that only makes sense here with its neutral value, which scripts pass
// habitually.
struct NeutralOption {
  const char* names;
  const char* meaning;
  int neutral;
};

constexpr NeutralOption kNeutralOptions[] = {
    {"-m,--agg_iters", "aggregated operations", 1},
    {"-z,--blocking", "blocking collectives", 0},
    {"-G,--cudagraph", "graph replays", 0},
    {"-C,--report_cputime", "CPU time", 0},
    {"-R,--local_register", "buffer registration", 0},
    {"-S,--report_timestamps", "time stamps", 0},
    {"-u,--unalign", "misaligned buffers", 0},
    {"-M,--memory_report", "memory report", 0},
};

// Values as written; turned into Options once all are known.
struct Written {
  std::string collective;
  std::string root = "0";
  bool min_given = false;
  bool max_given = false;
  bool step_given = false;
  int averaging = 1;
  int parallel_init = 0;
  int latency = 0;
};

// CLI11's range check without its text in the help.
template <class Number>
CLI::Validator range(Number least, Number most) {
  return CLI::Range(least, most).description("");
}

// An option that takes a size such as 64M.
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
  app.add_flag("--standalone", options.standalone, "do not look for a launcher's variables")
      ->group(group);
  app.add_option("-p,--parallel_init", written.parallel_init,
                 "accepted; ranks always start in parallel")
      ->check(range(0, 1))
      ->group("");
}

void add_operation_options(CLI::App& app, Options& options, Written& written) {
  const char* group = "Operation";
  app.add_option(
         "-d,--datatype", options.type_name,
         "int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16 or all (float)")
      ->type_name("TYPE")
      ->group(group);
  app.add_option("-o,--op", options.reduction_name, "sum, prod, min, max, avg or all (sum)")
      ->type_name("OP")
      ->group(group);
  app.add_option("-r,--root", written.root, "root rank, or all (0)")
      ->type_name("RANK")
      ->group(group);
}

void add_measurement_options(CLI::App& app, Options& options, Written& written) {
  const char* group = "Measurement";
  const std::uint64_t most = std::uint64_t{1} << 32;
  app.add_option("-n,--iters", options.iterations, "timed iterations, queued back to back (20)")
      ->type_name("N")
      ->check(range(std::uint64_t{1}, most))
      ->group(group);
  app.add_option("-w,--warmup_iters", options.warmup, "iterations before the clock starts (1)")
      ->type_name("N")
      ->check(range(std::uint64_t{0}, most))
      ->group(group);
  app.add_option("--min-time", options.min_time,
                 "time each cell for at least so long (0: -n alone decides)")
      ->type_name("SECONDS")
      ->check(range(0.0, 3600.0))
      ->group(group);
  app.add_option("-N,--run_cycles", options.cycles, "repeat the whole sweep; 0: for ever (1)")
      ->type_name("N")
      ->group(group);
  app.add_option("-a,--average", written.averaging,
                 "time shown: 0 rank 0, 1 mean, 2 min, 3 max of the ranks (1)")
      ->type_name("0-3")
      ->check(range(0, 3))
      ->group(group);
  app.add_option("-c,--check", options.checks, "checked runs per cell; 0: none (1)")
      ->type_name("N")
      ->check(range(std::uint64_t{0}, most))
      ->group(group);
  app.add_flag("--latency", options.latency,
               "after each row: latency of call + synchronise, with percentiles")
      ->group(group);
  app.add_option("-I", written.latency, "1: the same as --latency")->check(range(0, 1))->group("");
  app.add_option("--latency-iters", options.latency_iterations,
                 "calls of the latency pass at most (100)")
      ->type_name("N")
      ->check(range(std::uint64_t{1}, std::uint64_t{1} << 20))
      ->group(group);
}

void add_run_options(CLI::App& app, Options& options) {
  const char* group = "Run";
  app.add_option("-J,--json", options.json_path, "write results in nanoseconds to this file")
      ->type_name("FILE")
      ->group(group);
  app.add_option("-T,--timeout", options.timeout,
                 "end the run after so long, naming the ranks not done (0: never)")
      ->type_name("SECONDS")
      ->check(range(0.0, 1.0e7))
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

// The first thing on the line that nothing claimed.
void refuse_leftovers(const std::vector<std::string>& leftovers) {
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  const auto option = std::find_if(leftovers.begin(), leftovers.end(), is_option);
  if (option != leftovers.end()) {
    throw UsageError(text("unknown option ", *option, "; hccl-perf --help lists the options"));
  }
  if (!leftovers.empty()) {
    throw UsageError(
        text("unexpected argument '", leftovers.front(), "'; hccl-perf --help shows the form"));
  }
}

void choose_collective(Options& options, const std::string& argv0, const std::string& name) {
  const Collective* of_program = find_collective_of_program(argv0);
  if (of_program != nullptr) {
    if (!name.empty()) {
      throw UsageError(text("unexpected argument '", name, "': the program's name already says ",
                            of_program->name));
    }
    options.collective = of_program;
    return;
  }
  if (name.empty()) {
    throw UsageError(text("no collective given; use one of ", collective_names(),
                          " (hccl-perf --help shows more)"));
  }
  options.collective = find_collective(name);
  if (options.collective == nullptr) {
    throw UsageError(
        text("'", name, "' is not a collective of hccl-perf; use one of ", collective_names()));
  }
}

void check_ranks(const Options& options) {
  constexpr int kMostRanks = 64;  // of a communicator
  const int ranks = options.processes * options.threads;
  if (ranks > kMostRanks) {
    throw UsageError(text("-g ", options.processes, " -t ", options.threads, " makes ", ranks,
                          " ranks; a communicator has at most ", kMostRanks));
  }
}

void choose_sizes(Options& options, const Written& written) {
  // A bound given alone takes the other along instead of making an empty sweep.
  if (!written.min_given) options.min_bytes = std::min(options.min_bytes, options.max_bytes);
  if (!written.max_given) options.max_bytes = std::max(options.min_bytes, options.max_bytes);
  if (options.min_bytes > options.max_bytes) {
    throw UsageError(text("-b ", options.min_bytes, " is larger than -e ", options.max_bytes));
  }
  if (options.step_factor < 2 && options.step_bytes == 0 &&
      options.min_bytes != options.max_bytes) {
    throw UsageError("-i 0 never gets from -b to -e; give a step, or a factor with -f");
  }
  // The default step would leave out all but the first size: they double instead.
  const std::uint64_t range = options.max_bytes - options.min_bytes;
  if (!written.step_given && range > 0 && range < options.step_bytes && options.min_bytes > 0) {
    options.step_factor = 2;
  }
  constexpr std::uint64_t kMostRows = 1'000'000;
  if (options.step_factor < 2 && options.step_bytes != 0 &&
      range / options.step_bytes > kMostRows) {
    throw UsageError(text("-i ", options.step_bytes, " makes more than ", kMostRows,
                          " rows; give a larger step, or a factor with -f"));
  }
}

void choose_root(Options& options, const std::string& written) {
  if (written == "all" || written == "-1") {
    options.all_roots = true;
    return;
  }
  const bool digits =
      !written.empty() && written.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || written.size() > 6) {
    throw UsageError(text("-r: '", written, "' is not a rank; give a number from 0, or all"));
  }
  options.root = std::stoi(written);
}

void finish(Options& options, const Written& written) {
  check_ranks(options);
  choose_sizes(options, written);
  choose_root(options, written.root);
  options.types = options.collective->moves_data() ? parse_data_types(options.type_name)
                                                   : std::vector<DataType>{kDataTypes.front()};
  options.reductions = options.collective->reduces ? parse_reductions(options.reduction_name)
                                                   : std::vector<Reduction>{kNoReduction};
  if (!options.collective->reduces) options.reduction_name = kNoReduction.name;
  options.averaging = static_cast<Averaging>(written.averaging);
  options.latency = options.latency || written.latency == 1;
  if (options.cycles == 0 && !options.json_path.empty()) {
    throw UsageError(
        "-N 0 runs for ever, so --json FILE would never be written; give a number of cycles");
  }
}

}  // namespace

std::vector<std::uint64_t> Options::sizes() const {
  if (!collective->moves_data()) return {0};
  return size_sweep(min_bytes, max_bytes, step_bytes, step_factor);
}

std::variant<Options, Text> parse_options(int argc, const char* const* argv) {
  Options options;
  Written written;
  CLI::App app(
      "Measures and checks the collectives of HCCL, in the manner of nccl-tests.\n"
      "Collectives: " +
          collective_names() + ".",
      "hccl-perf");
  app.add_option("collective", written.collective,
                 "what to run, unless the program's name says it");
  add_size_options(app, options);
  add_rank_options(app, options, written);
  add_operation_options(app, options, written);
  add_measurement_options(app, options, written);
  add_run_options(app, options);
  add_neutral_options(app);
  app.footer(kExamples);
  app.get_formatter()->column_width(30);
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Text{text(app.help(), "\n")};
  } catch (const CLI::CallForVersion& version) {
    return Text{text(version.what(), "\n")};
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  refuse_leftovers(app.remaining());
  written.min_given = app.count("--minbytes") > 0;
  written.max_given = app.count("--maxbytes") > 0;
  written.step_given = app.count("--stepbytes") + app.count("--stepfactor") > 0;
  options.processes_given = app.count("--ngpus") > 0;
  choose_collective(options, argv[0], written.collective);
  finish(options, written);
  return options;
}

}  // namespace hccl_perf
