// SPDX-License-Identifier: Apache-2.0
// Where a training stands, in a file: parameters, optimizer state and the epochs so far. The same
// file continues in any mode and with any number of ranks: to the same bits, but for gradients in
// bfloat16, whose sums depend on that number.
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
  std::vector<std::vector<float>> states;  // of the optimizer
};

// The widths of the network, as people read them: "layers 64-128-64-10".
[[nodiscard]] std::string layers(const TrainingPlan& plan);

// The settings that must be the same for a training to go on as if it had not been interrupted.
[[nodiscard]] std::string identity(const TrainingPlan& plan);

// `data`: the check sum of what is trained with. Throws RunError that names the file and what is
// wrong with it: not readable, damaged, truncated, or of another training than `plan` with `data`.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path, const TrainingPlan& plan,
                                         std::uint32_t data);

// The old file stays until the new one is complete. Throws RunError.
void write_checkpoint(const std::string& path, const TrainingPlan& plan, std::uint32_t data,
                      const Checkpoint& checkpoint);

// From the ranks and back. save() is a collective: every rank gets all of it.
[[nodiscard]] Checkpoint save(Trainer& trainer, const Rank& rank);
void restore(const Checkpoint& checkpoint, Trainer& trainer);

}  // namespace ddp_trainer
