// SPDX-License-Identifier: Apache-2.0
// The program of one rank, from joining the communicator to leaving it.
#pragma once

#include "checkpoint.h"
#include "options.h"

#include <functional>
#include <optional>

namespace ddp_trainer {

struct Place {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;
};

struct Inputs {
  TrainingPlan plan;
  Split data;
  std::optional<Checkpoint> checkpoint;  // the state to resume from
};

// Reads the data and the checkpoint. Throws UsageError or RunError.
[[nodiscard]] Inputs read_inputs(const Options& options, int ranks);

using MakeSync = std::function<std::unique_ptr<GradientSync>(const Options&, const Rank&)>;
// Returns the implementation that --mode selects.
[[nodiscard]] std::unique_ptr<GradientSync> make_sync(const Options& options, const Rank& rank);

// Returns the inputs, which must stay valid until run_rank() returns. If this function throws on
// one rank, all ranks throw the error as a SharedError.
using ReadInputs = std::function<const Inputs&()>;

// Runs one rank. Calls `get_id`, which returns the unique id, after the rank has acquired a device.
// Calls `read` after all ranks have joined. Rank 0 prints the report and writes the files. Throws
// RunError.
void run_rank(const Options& options, const ReadInputs& read, const Place& place,
              const std::function<hcclUniqueId()>& get_id, const MakeSync& make = make_sync);

}  // namespace ddp_trainer
