// SPDX-License-Identifier: Apache-2.0
// A file with the state of a training run: the parameters, the optimizer state and the reports on
// the completed epochs. Training can continue from the file in any mode and with any number of
// ranks that can share a batch evenly. The result is bit-identical, except that sums of bfloat16
// gradients may depend on the mode and on the number of ranks.
#pragma once

#include "trainer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ddp_trainer {

struct Checkpoint {
  std::vector<EpochReport> epochs;
  std::uint64_t steps = 0;
  std::vector<float> parameters;
  std::vector<std::vector<float>> states;  // the optimizer's states
};

// Returns the network's widths as text, such as "layers 64-128-64-10".
[[nodiscard]] std::string layers(const TrainingPlan& plan);

// Returns, as text, the settings that must match for training to continue from a checkpoint.
[[nodiscard]] std::string identity(const TrainingPlan& plan);

// Reads a checkpoint. Throws RunError if the file is not readable, is damaged or truncated, or
// belongs to a training run with a different identity() or a different data checksum.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path, const TrainingPlan& plan,
                                         std::uint32_t data);

// Writes a checkpoint. Replaces an old file only when the new file is complete. Throws RunError.
void write_checkpoint(const std::string& path, const TrainingPlan& plan, std::uint32_t data,
                      const Checkpoint& checkpoint);

// save() returns the trainer's whole state on every rank, without the reports on the epochs. All
// ranks must call it. restore() loads such a state into a trainer.
[[nodiscard]] Checkpoint save(Trainer& trainer, const Rank& rank);
void restore(const Checkpoint& checkpoint, Trainer& trainer);

}  // namespace ddp_trainer
