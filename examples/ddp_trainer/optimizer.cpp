// SPDX-License-Identifier: Apache-2.0
// Updates parameters element by element.
#include "optimizer.h"

#include <algorithm>
#include <cmath>

namespace ddp_trainer {

Optimizer::Optimizer(const OptimizerOptions& options, const Device& device, Range range)
    : options_(options), range_(range) {
  for (std::size_t i = 0; i < options.states(); ++i) {
    states_.push_back(std::make_unique<Buffer<float>>(device, range.size()));
    std::fill_n(states_.back()->host(), range.size(), 0.0F);
  }
}

void Optimizer::update(float* parameters, const float* gradients, std::uint64_t step) {
  if (options_.kind == OptimizerOptions::Kind::sgd) {
    update_sgd(parameters + range_.begin, gradients + range_.begin);
  } else {
    update_adamw(parameters + range_.begin, gradients + range_.begin, step);
  }
}

void Optimizer::update_sgd(float* parameters, const float* gradients) {
  float* const velocity = states_[0]->host();
  for (std::size_t i = 0; i < range_.size(); ++i) {
    velocity[i] =
        options_.momentum * velocity[i] + gradients[i] + options_.weight_decay * parameters[i];
    parameters[i] -= options_.rate * velocity[i];
  }
}

void Optimizer::update_adamw(float* parameters, const float* gradients, std::uint64_t step) {
  float* const mean = states_[0]->host();
  float* const square = states_[1]->host();
  const auto steps = static_cast<double>(step);
  const auto correction1 = static_cast<float>(1 / (1 - std::pow(options_.beta1, steps)));
  const auto correction2 = static_cast<float>(1 / (1 - std::pow(options_.beta2, steps)));
  const float kept = 1 - options_.rate * options_.weight_decay;
  for (std::size_t i = 0; i < range_.size(); ++i) {
    mean[i] = options_.beta1 * mean[i] + (1 - options_.beta1) * gradients[i];
    square[i] = options_.beta2 * square[i] + (1 - options_.beta2) * gradients[i] * gradients[i];
    parameters[i] =
        kept * parameters[i] - options_.rate * mean[i] * correction1 /
                                   (std::sqrt(square[i] * correction2) + options_.epsilon);
  }
}

}  // namespace ddp_trainer
