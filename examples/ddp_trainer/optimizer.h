// SPDX-License-Identifier: Apache-2.0
// SGD with momentum, and AdamW, over a range of the parameters.
#pragma once

#include "gradient_sync.h"

#include <memory>
#include <vector>

namespace ddp_trainer {

struct OptimizerOptions {
  enum class Kind { sgd, adamw };
  Kind kind = Kind::sgd;
  float rate = 0;
  float momentum = 0.9F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0;

  // Returns the number of floats of optimizer state per parameter.
  [[nodiscard]] std::size_t states() const { return kind == Kind::sgd ? 1 : 2; }
};

class Optimizer {
 public:
  // The optimizer has state for the parameters in `range`, and updates only these.
  Optimizer(const OptimizerOptions& options, const Device& device, Range range);

  // Updates the parameters. Runs as a kernel. `step` is 1 in the first step.
  void update(float* parameters, const float* gradients, std::uint64_t step);

  [[nodiscard]] Range range() const { return range_; }
  // Returns the optimizer state, which is a part of checkpoints.
  [[nodiscard]] const std::vector<std::unique_ptr<Buffer<float>>>& states() const {
    return states_;
  }

 private:
  void update_sgd(float* parameters, const float* gradients);
  void update_adamw(float* parameters, const float* gradients, std::uint64_t step);

  OptimizerOptions options_;
  Range range_;
  std::vector<std::unique_ptr<Buffer<float>>> states_;
};

}  // namespace ddp_trainer
