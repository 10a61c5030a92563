// SPDX-License-Identifier: Apache-2.0
// Parses the command line.
#include "options.h"

#include "errors.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include <CLI/CLI.hpp>

namespace ddp_trainer {
namespace {

const std::map<std::string, Mode> kModes{
    {"ddp", Mode::ddp}, {"fast_ddp", Mode::fast_ddp}, {"sharded", Mode::sharded}};
const std::map<std::string, OptimizerOptions::Kind> kOptimizers{
    {"sgd", OptimizerOptions::Kind::sgd}, {"adamw", OptimizerOptions::Kind::adamw}};

// Returns the path of the digits in the source tree, or of the installed copy.
std::string digits_path() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::exists(DDP_TRAINER_DATA, ignored)) return DDP_TRAINER_DATA;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  return program.parent_path().parent_path() / "share/hccl/digits.csv.gz";
}

// Options as written on the command line, where that differs from how they are stored.
struct Written {
  std::string hidden = "128,64";
  std::string optimizer = "sgd";
  std::string gradients = "float32";
  double bucket_mib = 25;
  std::optional<float> rate;
};

// Accepts numbers in a range. CLI::Range would also accept strings that are not numbers, and would
// report wrong bounds.
CLI::Validator between(double least, double most) {
  const auto check = [least, most](const std::string& written) {
    double value = NAN;
    const char* const end = written.data() + written.size();
    const auto [stopped, error] = std::from_chars(written.data(), end, value);
    const bool is_number = error == std::errc() && stopped == end;
    if (is_number && value >= least && value <= most) return std::string();
    return text('\'', written, "' is not a number from ", least, " to ", most);
  };
  return {check, text("from ", least, " to ", most)};
}

// Parses widths such as "128,64".
std::vector<std::size_t> parse_widths(const std::string& written) {
  constexpr std::size_t kMost = 1 << 16;
  std::vector<std::size_t> widths;
  const char* at = written.data();
  const char* const end = at + written.size();
  for (;;) {
    std::size_t width = 0;
    const auto [stopped, error] = std::from_chars(at, end, width);
    if (error != std::errc() || width < 1 || width > kMost || (stopped != end && *stopped != ','))
      throw UsageError(text("--hidden: '", written, "' is not a list of widths from 1 to ", kMost,
                            " such as 128,64"));
    widths.push_back(width);
    if (stopped == end) return widths;
    at = stopped + 1;
  }
}

void add_training_options(CLI::App& app, Options& options, Written& written) {
  TrainingPlan& plan = options.plan;
  plan.sampling.batch = 128;
  plan.sampling.micro_batch = 16;
  options.epochs = 40;
  app.add_option("--hidden", written.hidden, "widths of the hidden layers, first to last")
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "number of passes over the samples")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seed", plan.seed, "seed of the initial weights and of the order of the samples")
      ->check(between(0, 0x1p53))
      ->capture_default_str();
  app.add_option("--batch", plan.sampling.batch, "number of samples in a step, over all ranks")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--micro-batch", plan.sampling.micro_batch,
                 "number of samples in one pass; a rank adds up the gradients of its "
                 "micro-batches")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--optimizer", written.optimizer, "sgd (with momentum) or adamw")
      ->check(CLI::IsMember(kOptimizers))
      ->capture_default_str();
  app.add_option("--rate", written.rate, "learning rate; default: 0.1 with sgd, 0.002 with adamw")
      ->check(between(1e-9, 1e9));
  app.add_option("--momentum", plan.optimizer.momentum, "momentum of sgd")
      ->check(between(0, 1))
      ->default_str(text(plan.optimizer.momentum));
  app.add_option("--weight-decay", plan.optimizer.weight_decay,
                 "weight decay: added to the gradient with sgd, decoupled from it with adamw")
      ->check(between(0, 1e9))
      ->capture_default_str();
}

void add_synchronisation_options(CLI::App& app, Options& options, Written& written) {
  app.add_option("-g", options.processes, "number of processes to start, each with its own device")
      ->check(CLI::Range(1, 8));
  app.add_option("--mode", options.mode_name,
                 "ddp (buckets reduced during the backward pass), fast_ddp (one all-reduce after "
                 "it) or sharded (reduce-scatter, update of a share, all-gather)")
      ->check(CLI::IsMember(kModes))
      ->capture_default_str();
  app.add_option("--gradients", written.gradients,
                 "type in which gradients are sent: float32 or bfloat16")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  app.add_option("--bucket-mib", written.bucket_mib,
                 "bucket size for --mode ddp, in MiB of gradients")
      ->check(between(0.001, 4096))
      ->capture_default_str();
}

void add_file_options(CLI::App& app, Options& options) {
  options.data_path = digits_path();
  app.add_option("--data", options.data_path, "file of digits: 64 pixels and a class per line");
  app.add_option("--checkpoint", options.checkpoint_path,
                 "continue from this file if it exists, and write it after each epoch");
  app.add_option(
      "--trace", options.trace_path,
      "write the times of kernels and collectives to this file, for Perfetto or chrome://tracing");
  app.add_option("--json", options.json_path,
                 "write the epochs and the configuration to this file, as JSON");
}

void complete(Options& options, const Written& written) {
  TrainingPlan& plan = options.plan;
  plan.widths = {Dataset::kPixels};
  const std::vector<std::size_t> hidden = parse_widths(written.hidden);
  plan.widths.insert(plan.widths.end(), hidden.begin(), hidden.end());
  plan.widths.push_back(Dataset::kClasses);
  plan.optimizer.kind = kOptimizers.at(written.optimizer);
  plan.bfloat16 = written.gradients == "bfloat16";
  const bool sgd = plan.optimizer.kind == OptimizerOptions::Kind::sgd;
  plan.optimizer.rate = written.rate.value_or(sgd ? 0.1F : 0.002F);
  options.mode = kModes.at(options.mode_name);
  options.bucket_bytes = static_cast<std::size_t>(written.bucket_mib * (1 << 20));
}

}  // namespace

std::variant<Options, HelpText> parse_options(int argc, char** argv) {
  CLI::App app{
      "Trains a small network on handwritten digits, data-parallel over the ranks of an HCCL "
      "communicator. It starts the ranks itself (-g), or runs under mpirun, srun or torchrun."};
  app.name("ddp_trainer");
  Options options;
  Written written;
  add_synchronisation_options(app, options, written);
  add_training_options(app, options, written);
  add_file_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return HelpText{app.help()};
  } catch (const CLI::ParseError& error) {
    throw UsageError(text(error.what(), "; --help lists the options"));
  }
  for (const char* file : {"--data", "--checkpoint", "--trace", "--json"}) {
    if (app.count(file) > 0 && app[file]->as<std::string>().empty())
      throw UsageError(text(file, " names no file; give a path"));
  }
  options.processes_given = app.count("-g") > 0;
  complete(options, written);
  return options;
}

TrainingPlan plan_for(const Options& options, int ranks) {
  TrainingPlan plan = options.plan;
  plan.sampling.ranks = ranks;
  const std::size_t share = plan.sampling.micro_batch * static_cast<std::size_t>(ranks);
  if (plan.sampling.batch % share != 0) {
    throw UsageError(
        text("a batch of ", plan.sampling.batch, " does not divide into micro-batches of ",
             plan.sampling.micro_batch, " for ", ranks, ranks == 1 ? " rank" : " ranks",
             "; give a --batch that is a multiple of ", share, ", or another --micro-batch"));
  }
  return plan;
}

}  // namespace ddp_trainer
