// SPDX-License-Identifier: Apache-2.0
// Converts the command line to consistent options.
#include "options.h"

#include "baseline.h"
#include "launch_environment.h"
#include "quantities.h"
#include "report_file.h"
#include "text.h"
#include "written_options.h"

#include <algorithm>
#include <numeric>

namespace hccl_perf {
namespace {

constexpr const char* kExamples = R"(Examples:
  hccl-perf all_reduce -g 8 -b 8 -e 64M -f 2       8 processes on this machine, no launcher
  hccl-perf reduce_scatter -g 4 -d all -o all      each type with sum, prod, min, max and avg
  hccl-perf broadcast -g 8 -r all --json out.json  every root; results in a file
  hccl-perf all_reduce -g 8 --nodes 2              two emulated nodes of 4 ranks each
  hccl-perf all_reduce -g 8 --compare out.json     compare with an earlier run
  hccl-perf pingpong -g 2 -b 8 -e 1M -f 4          latency and bandwidth of messages
  all_reduce_perf -g 2 -t 4                        as in nccl-tests; 2 processes x 4 threads
  mpirun --allow-run-as-root --oversubscribe -np 4 hccl-perf all_reduce -b 1K -e 1M
                                                   one rank for each process of a launcher

#wrong counts the wrong elements. Floating-point sums, averages and products of three or more ranks
may differ from the expected values by rounding errors, because the library may reduce in another
order; all other results must be bit-identical.

Exit status: 0 all data correct, 1 wrong data, a failed rank or an expired time limit, 2 bad
arguments, 3 slower than --compare allows.)";

// Throws UsageError if a word is left over that no option has consumed. The error names the first
// leftover option, or else the first leftover word.
void refuse_leftovers(const std::vector<std::string>& leftovers) {
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  const auto option = std::find_if(leftovers.begin(), leftovers.end(), is_option);
  if (option != leftovers.end()) {
    throw UsageError(text("unknown option ", *option, "; hccl-perf --help lists the options"));
  }
  if (!leftovers.empty()) {
    throw UsageError(
        text("unexpected argument '", leftovers.front(), "'; hccl-perf --help shows the usage"));
  }
}

void choose_collective(Options& options, const std::string& argv0, const std::string& name) {
  const Collective* of_program = find_collective_of_program(argv0);
  if (of_program != nullptr) {
    if (!name.empty()) {
      throw UsageError(text("unexpected argument '", name, "': the program's name already selects ",
                            of_program->name));
    }
    options.collective = of_program;
    return;
  }
  if (name.empty()) {
    throw UsageError(
        text("no collective given; use one of ", collective_names(), " (see hccl-perf --help)"));
  }
  options.collective = find_collective(name);
  if (options.collective == nullptr) {
    throw UsageError(
        text("'", name, "' is not a collective of hccl-perf; use one of ", collective_names()));
  }
}

void check_ranks(const Options& options) {
  if (options.nodes > options.processes) {
    throw UsageError(text("--nodes ", options.nodes, " with -g ", options.processes,
                          ": every node needs a process of its own; give -g ", options.nodes,
                          " or more"));
  }
  const int largest_block = (options.processes + options.nodes - 1) / options.nodes;
  const int ranks = largest_block * options.threads;
  if (ranks > kMostRanksOfNode) {
    const std::string nodes = options.nodes > 1 ? text(" --nodes ", options.nodes) : "";
    throw UsageError(text("-g ", options.processes, " -t ", options.threads, nodes, " makes ",
                          ranks, " ranks on a node, but a communicator allows at most ",
                          kMostRanksOfNode, " ranks on a node"));
  }
}

void choose_sizes(Options& options, const Written& written) {
  if (options.plan_rank && !written.max_given) options.max_bytes = options.min_bytes;
  if (!written.min_given && !written.max_given)
    options.min_bytes = options.max_bytes = options.collective->default_bytes();
  // If only one of -b and -e is given and the sweep would be empty, move the other bound.
  if (!written.min_given) options.min_bytes = std::min(options.min_bytes, options.max_bytes);
  if (!written.max_given) options.max_bytes = std::max(options.min_bytes, options.max_bytes);
  if (options.min_bytes > options.max_bytes) {
    throw UsageError(text("-b ", options.min_bytes, " is larger than -e ", options.max_bytes));
  }
  if (options.step_factor < 2 && options.step_bytes == 0 &&
      options.min_bytes != options.max_bytes) {
    throw UsageError("-i 0 never reaches -e; give a step above 0, or a factor with -f");
  }
  // If the default step would skip all sizes except the first, double the sizes instead.
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
    throw UsageError(text("-r: '", written, "' is not a rank; give the number of a rank, or all"));
  }
  options.root = std::stoi(written);
}

void choose_repeats(Options& options, const Written& written) {
  constexpr std::uint64_t kForComparison = 7;
  const bool compared_some_day = !(options.json_path.empty() && options.baseline_path.empty());
  options.repeats = compared_some_day ? kForComparison : 1;
  if (written.repeats != 0) options.repeats = written.repeats;
  const std::uint64_t samples = options.repeats * options.cycles;
  if (!options.baseline_path.empty() && samples < kFewestSamples) {
    throw UsageError(text("--compare needs at least ", kFewestSamples,
                          " timed passes per cell, but --repeats ", options.repeats, " -N ",
                          options.cycles, " makes ", samples));
  }
}

// Throws UsageError if two result options name the same file, if a result file would replace the
// baseline, or if an endless run (-N 0) is to write or compare results.
void check_results(const Options& options) {
  const std::vector<NamedReport> files = {
      {"--json", options.json_path}, {"--csv", options.csv_path}, {"--raw", options.raw_path}};
  std::vector<NamedReport> files_and_baseline = files;
  files_and_baseline.push_back({"--compare", options.baseline_path});
  require_distinct(files_and_baseline);
  for (const auto& [option, path] : files) {
    if (!path.empty() && options.cycles == 0) {
      throw UsageError(text("-N 0 runs forever, so ", option,
                            " FILE would never be written; give a number of cycles"));
    }
  }
  if (options.cycles == 0 && !options.baseline_path.empty())
    throw UsageError("-N 0 runs forever, so --compare would never report; give a number of cycles");
}

void finish(Options& options, const Written& written) {
  check_ranks(options);
  choose_sizes(options, written);
  choose_root(options, written.root);
  options.types = options.collective->moves_data() ? parse_data_types(options.type_name)
                                                   : std::vector<DataType>{kDataTypes.front()};
  options.reductions = options.collective->reduces ? parse_reductions(options.reduction_name)
                                                   : std::vector<Reduction>{kNoReduction};
  check_types(options.reductions, options.types);
  if (options.types.size() == 1) options.type_name = options.types.front().name;
  if (!options.collective->reduces) options.reduction_name = kNoReduction.name;
  options.averaging = static_cast<Averaging>(written.averaging);
  options.blocking = static_cast<Blocking>(written.blocking);
  options.latency = options.latency || written.latency == 1;
  options.timeout = parse_seconds(written.timeout);
  choose_repeats(options, written);
  check_results(options);
  if (options.plan_rank && options.wants_results())
    throw UsageError("--plan measures nothing; leave --json, --csv, --raw and --compare out");
  if (options.plan_rank && options.collective->point_to_point()) {
    throw UsageError(text("--plan: ", options.collective->name,
                          " consists of messages, which have no plan; choose a collective"));
  }
}

}  // namespace

std::vector<std::uint64_t> Options::sizes() const {
  if (!collective->moves_data()) return {0};
  return size_sweep(min_bytes, max_bytes, step_bytes, step_factor);
}

std::vector<int> Options::roots(int ranks) const {
  if (!collective->has_root) return {-1};
  if (!all_roots) return {root};
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<RowCase> Options::cases(int ranks) const {
  std::vector<RowCase> all;
  for (const DataType& type : types) {
    for (const Reduction& reduction : reductions) {
      for (const int each : roots(ranks)) {
        for (const std::uint64_t bytes : sizes()) all.push_back({type, reduction, each, bytes});
      }
    }
  }
  return all;
}

std::variant<Options, Text> parse_options(int argc, const char* const* argv) {
  Options options;
  Written written;
  CLI::App app(
      "Measures and checks HCCL collectives, as nccl-tests does for NCCL.\n"
      "Collectives: " +
          collective_names() + ".",
      "hccl-perf");
  add_options(app, options, written);
  add_demo_options(app, written);
  app.footer(kExamples);
  app.get_formatter()->column_width(30);
  app.allow_extras();
  refuse_demo_options(std::vector<std::string>(argv + 1, argv + argc));
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
  apply_demo_options(app, options, written);
  choose_collective(options, argv[0], written.collective);
  finish(options, written);
  options.command_line.assign(argv, argv + argc);
  return options;
}

}  // namespace hccl_perf
