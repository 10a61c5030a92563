// SPDX-License-Identifier: Apache-2.0
// Rank 0's report on a training run: lines of text and a JSON file.
#pragma once

#include "options.h"

#include <string>
#include <vector>

namespace ddp_trainer {

struct Training {
  Options options;
  TrainingPlan plan;
  std::vector<EpochReport> epochs;
  std::uint32_t weights = 0;  // checksum of the parameters
};

[[nodiscard]] std::string heading(const Options& options, const TrainingPlan& plan,
                                  std::size_t parameters);
[[nodiscard]] std::string epoch_line(const EpochReport& epoch, int epochs);
// Returns the last line: "final: loss L test-accuracy A samples/s S".
[[nodiscard]] std::string final_line(const std::vector<EpochReport>& epochs);

[[nodiscard]] std::string json_text(const Training& training);

}  // namespace ddp_trainer
