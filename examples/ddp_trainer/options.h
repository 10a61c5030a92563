// SPDX-License-Identifier: Apache-2.0
// The command line of ddp_trainer.
#pragma once

#include "trainer.h"

#include <string>
#include <variant>

namespace ddp_trainer {

enum class Mode { ddp, fast_ddp, sharded };

struct Options {
  TrainingPlan plan;  // without the number of ranks
  Mode mode = Mode::ddp;
  std::string mode_name = "ddp";
  int processes = 1;  // -g
  bool processes_given = false;
  int epochs = 0;
  std::size_t bucket_bytes = 0;
  std::string data_path;
  std::string checkpoint_path;
  std::string trace_path;
  std::string json_path;
};

// The output of --help.
struct HelpText {
  std::string text;
};

// Parses the command line. Throws UsageError.
[[nodiscard]] std::variant<Options, HelpText> parse_options(int argc, char** argv);

// Returns the plan for `ranks` ranks. Throws UsageError if they cannot share a batch evenly.
[[nodiscard]] TrainingPlan plan_for(const Options& options, int ranks);

}  // namespace ddp_trainer
