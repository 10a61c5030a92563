// SPDX-License-Identifier: Apache-2.0
// Converts the supported options of hccl_demo to hccl-perf's own, or ignores those that make no
// difference. Rejects other options of hccl_demo with an error that says what to do instead.
#include "quantities.h"
#include "text.h"
#include "written_options.h"

#include <algorithm>

namespace hccl_perf {
namespace {

struct RefusedOption {
  const char* name;
  const char* instead;
};

constexpr RefusedOption kRefused[] = {
    {"-mpi", "start hccl-perf with mpirun -np N"},
    {"--mpi", "start hccl-perf with mpirun -np N"},
    {"--custom_comm", "the communicator has all ranks, so start fewer with -g"},
    {"--ranks_list", "sendrecv always sends from each rank to the next one"},
    {"--data_csv", "hccl-perf compares every element; -c N repeats the check with other data"},
    {"--scaleup_group_size", "sendrecv always sends from each rank to the next one"},
    {"--scaleout_bw", "use --compare FILE to compare with an earlier run"},
    {"--clean", "hccl-perf builds nothing, so there is nothing to clean; leave it out"},
    {"--list_tests", "hccl-perf --help lists the collectives"},
    {"--doc", "hccl-perf --help lists the options"},
    {"--ignore_mpi_errors", "a rank that fails ends the run"},
};

void refuse_both(const CLI::App& app, const char* one, const char* other) {
  if (app.count(one) > 0 && app.count(other) > 0)
    throw UsageError(text(one, " and ", other, " set the same values; leave one out"));
}

void apply_test(Written& written) {
  if (written.test.empty()) return;
  if (!written.collective.empty() && written.collective != written.test) {
    throw UsageError(text("--test ", written.test, ", but the collective is given as '",
                          written.collective, "'; leave one out"));
  }
  written.collective = written.test;
}

void apply_sizes(const CLI::App& app, Options& options, Written& written) {
  for (const char* ours : {"--minbytes", "--maxbytes"}) {
    refuse_both(app, "--size", ours);
    refuse_both(app, "--size_range", ours);
  }
  refuse_both(app, "--size", "--size_range");
  if (app.count("--size") > 0) {
    options.min_bytes = options.max_bytes = written.size;
    written.min_given = written.max_given = true;
  }
  if (app.count("--size_range") == 0) {
    if (app.count("--size_range_inc") > 0)
      throw UsageError("--size_range_inc needs --size_range A B");
    return;
  }
  for (const char* ours : {"--stepfactor", "--stepbytes"}) refuse_both(app, "--size_range", ours);
  options.min_bytes = parse_bytes(written.size_range.front());
  options.max_bytes = parse_bytes(written.size_range.back());
  options.step_factor = std::uint64_t{1} << written.size_range_increment;
  written.min_given = written.max_given = written.step_given = true;
}

void apply_measure(Options& options, const Written& written) {
  if (written.no_correctness) options.checks = 0;
  if (written.measure.empty() || written.measure == "bw") return;
  if (written.measure != "latency")
    throw UsageError(
        text("--measure: '", written.measure, "' is not a measure; use bw or latency"));
  options.latency = true;
}

// Converts --nranks, --ranks_per_node and --node_id. Throws UsageError unless they place all ranks
// on this machine.
void apply_ranks(const CLI::App& app, Options& options, const Written& written) {
  if (app.count("--nranks") + app.count("--node_id") + app.count("--ranks_per_node") == 0) return;
  refuse_both(app, "--nranks", "--ngpus");
  const int here = app.count("--ranks_per_node") > 0 ? written.ranks_per_node : written.ranks;
  const int ranks = app.count("--nranks") > 0 ? written.ranks : here;
  if (ranks == 0) {
    throw UsageError("--node_id needs --nranks N, the number of ranks");
  }
  if (written.node != 0 || here < ranks) {
    throw UsageError(
        text("--nranks ", ranks, " --ranks_per_node ", here, " --node_id ", written.node,
             ": hccl-perf does not start ranks on other machines; use a launcher "
             "(mpirun -np ",
             ranks, " hccl-perf), or emulate the nodes here with -g ", ranks, " --nodes N"));
  }
  options.processes = ranks;
  options.processes_given = true;
}

}  // namespace

void add_demo_options(CLI::App& app, Written& written) {
  app.option_defaults()->group("As in hccl_demo");
  app.add_option("--test", written.test, "the collective")->type_name("NAME");
  add_size(app, "--size", written.size, "the only size");
  app.add_option("--size_range", written.size_range, "first and last size")
      ->type_name("SIZE")
      ->expected(2);
  add_number(app, "--size_range_inc", written.size_range_increment, {1, 40},
             "each size is 2^N times the previous size (1)");
  app.add_flag("--no_correctness", written.no_correctness, "the same as -c 0");
  app.add_option("--measure", written.measure, "bw, or latency as with --latency")
      ->type_name("WHAT");
  add_number(app, "--nranks", written.ranks, {1, 1024}, "the same as -g");
  add_number(app, "--ranks_per_node", written.ranks_per_node, {1, 1024},
             "ranks on this machine, at least --nranks");
  add_number(app, "--node_id", written.node, {0, 1 << 20}, "must be 0: all ranks start here");
  const auto nothing = [](std::int64_t /*times*/) {};
  app.option_defaults()->group("");
  app.add_flag("--same_buffers", nothing, "accepted; a cell always uses the same buffers");
  app.add_flag("--no_color", nothing, "accepted; the table has no colours");
}

void refuse_demo_options(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    const auto* const refused =
        std::find_if(std::begin(kRefused), std::end(kRefused),
                     [&](const RefusedOption& option) { return name == option.name; });
    if (refused == std::end(kRefused)) continue;
    throw UsageError(text(refused->name, " of hccl_demo is not supported; ", refused->instead));
  }
}

void apply_demo_options(const CLI::App& app, Options& options, Written& written) {
  apply_test(written);
  if (written.collective == "scale_validation") {
    throw UsageError(
        "scale_validation of hccl_demo is not supported; use sendrecv with --compare FILE to "
        "compare the bandwidth with that of an earlier run");
  }
  const bool without_unit = app.count("--timeout") > 0 &&
                            written.timeout.find_first_not_of("0123456789.") == std::string::npos;
  if (!written.test.empty() && without_unit) {
    throw UsageError(text("--timeout ", written.timeout,
                          ": hccl_demo counts minutes, nccl-tests seconds; with --test, write ",
                          written.timeout, "m or ", written.timeout, "s"));
  }
  apply_sizes(app, options, written);
  apply_measure(options, written);
  apply_ranks(app, options, written);
}

}  // namespace hccl_perf
