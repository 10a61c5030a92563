// SPDX-License-Identifier: Apache-2.0
// The work of one rank from joining to leaving.
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
  std::optional<Checkpoint> checkpoint;  // to continue from
};

// Throws UsageError or RunError.
[[nodiscard]] Inputs read_inputs(const Options& options, int ranks);

using MakeSync = std::function<std::unique_ptr<GradientSync>(const Options&, const Rank&)>;
// The choice of --mode.
[[nodiscard]] std::unique_ptr<GradientSync> make_sync(const Options& options, const Rank& rank);

// Returns the state that stays to the end. All ranks throw an error of one
// as a SharedError.
using ReadInputs = std::function<const Inputs&()>;

// `get_id` gives the unique id to join with, called once a device is held; `read` is called when
// all have joined. Rank 0 prints and writes the files. Throws RunError.
void run_rank(const Options& options, const ReadInputs& read, const Place& place,
              const std::function<hcclUniqueId()>& get_id, const MakeSync& make = make_sync);

}  // namespace ddp_trainer
