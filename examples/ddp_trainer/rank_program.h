// SPDX-License-Identifier: Apache-2.0
// What one rank does from joining to leaving.
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
// What --mode says.
[[nodiscard]] std::unique_ptr<GradientSync> make_sync(const Options& options, const Rank& rank);

// Gives what stays to the end. What it throws, all ranks throw as a SharedError.
using ReadInputs = std::function<const Inputs&()>;

// `get_id` gives the unique id to join with, called once a device is held; `read` is called when
// all have joined. Rank 0 prints and writes the files. Throws RunError.
void run_rank(const Options& options, const ReadInputs& read, const Place& place,
              const std::function<hcclUniqueId()>& get_id, const MakeSync& make = make_sync);

}  // namespace ddp_trainer
