// SPDX-License-Identifier: Apache-2.0
// Formats lines and JSON.
#include "report.h"

#include "checkpoint.h"
#include "errors.h"
#include "text.h"

#include <array>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace ddp_trainer {
namespace {

using nlohmann::ordered_json;

double share(const EpochReport& epoch) {
  return epoch.step_ms > 0 ? epoch.communication_ms / epoch.step_ms : 0;
}

std::string hexadecimal(std::uint32_t value) {
  std::array<char, 16> written{};
  std::snprintf(written.data(), written.size(), "%08x", value);
  return written.data();
}

// Returns the mean throughput over the steps of all epochs.
double samples_per_second(const std::vector<EpochReport>& epochs) {
  double samples = 0;
  double seconds = 0;
  for (const EpochReport& epoch : epochs) {
    samples += epoch.samples_per_second * epoch.seconds;
    seconds += epoch.seconds;
  }
  return seconds > 0 ? samples / seconds : 0;
}

}  // namespace

std::string heading(const Options& options, const TrainingPlan& plan, std::size_t parameters) {
  return text("ddp_trainer: ", plan.sampling.ranks,
              plan.sampling.ranks == 1 ? " rank, " : " ranks, ", options.mode_name, ", ",
              layers(plan), " (", parameters, " parameters), batch ", plan.sampling.batch, ", ",
              plan.sampling.micro_batches(),
              plan.sampling.micro_batches() == 1 ? " micro-batch of " : " micro-batches of ",
              plan.sampling.micro_batch, " on each rank");
}

std::string epoch_line(const EpochReport& epoch, int epochs) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(),
                "epoch %*d/%d  loss %.6f  train %6.2f %%  test %6.2f %%  %8.0f samples/s  "
                "step %.3f ms, %4.1f %% of it communication",
                static_cast<int>(std::to_string(epochs).size()), epoch.epoch, epochs, epoch.loss,
                epoch.accuracy * 100, epoch.test_accuracy * 100, epoch.samples_per_second,
                epoch.step_ms, share(epoch) * 100);
  return line.data();
}

std::string final_line(const std::vector<EpochReport>& epochs) {
  std::array<char, 128> line{};
  std::snprintf(line.data(), line.size(), "final: loss %.9g test-accuracy %.4f samples/s %.0f",
                epochs.back().loss, epochs.back().test_accuracy, samples_per_second(epochs));
  return line.data();
}

std::string json_text(const Training& training) {
  ordered_json epochs = ordered_json::array();
  for (const EpochReport& epoch : training.epochs) {
    epochs.push_back({{"epoch", epoch.epoch},
                      {"loss", epoch.loss},
                      {"accuracy", epoch.accuracy},
                      {"test_loss", epoch.test_loss},
                      {"test_accuracy", epoch.test_accuracy},
                      {"samples_per_second", epoch.samples_per_second},
                      {"step_ms", epoch.step_ms},
                      {"communication_ms", epoch.communication_ms}});
  }
  const Layout layout(training.plan.widths);
  return ordered_json{{"training", identity(training.plan)},
                      {"ranks", training.plan.sampling.ranks},
                      {"mode", training.options.mode_name},
                      {"parameters", layout.parameters()},
                      {"epochs", epochs},
                      {"weights_crc32", hexadecimal(training.weights)}}
             .dump(2) +
         "\n";
}

}  // namespace ddp_trainer
