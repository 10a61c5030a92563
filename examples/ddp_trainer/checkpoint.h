// SPDX-License-Identifier: Apache-2.0
// The state of a training in a file: the parameters, the optimizer state and the number of
// completed epochs. Training can resume from the file in any mode and with any number of ranks, and
// gives the same bits, except that sums of bfloat16 gradients depend on the number of ranks.
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

// Returns the widths of the network as a text such as "layers 64-128-64-10".
[[nodiscard]] std::string layers(const TrainingPlan& plan);

// Returns, as a text, the settings that must be equal for a training to continue as if it had not
// been interrupted.
[[nodiscard]] std::string identity(const TrainingPlan& plan);

// Reads a checkpoint of a training of `plan` with data whose check sum is `data`. Throws RunError,
// which names the file and its defect: the file is not readable, is damaged or truncated, or
// belongs to another training.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path, const TrainingPlan& plan,
                                         std::uint32_t data);

// Writes a checkpoint. Replaces an old file only when the new one is complete. Throws RunError.
void write_checkpoint(const std::string& path, const TrainingPlan& plan, std::uint32_t data,
                      const Checkpoint& checkpoint);

// save() collects the state of all ranks. It is a collective call, and returns the whole state on
// every rank. restore() loads the state into a trainer.
[[nodiscard]] Checkpoint save(Trainer& trainer, const Rank& rank);
void restore(const Checkpoint& checkpoint, Trainer& trainer);

}  // namespace ddp_trainer
