// SPDX-License-Identifier: Apache-2.0
// The updates against the papers' formulas in double, whole and in shares.
#include "optimizer.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ddp_trainer {
namespace {

constexpr std::size_t kCount = 101;
constexpr int kSteps = 20;

float drawn(std::size_t i, int step) {
  std::mt19937 random(static_cast<unsigned>(i * 100 + static_cast<std::size_t>(step)));
  return static_cast<float>(random()) * 0x1p-32F - 0.5F;
}

std::vector<float> run(const OptimizerOptions& options, const std::vector<Range>& shares) {
  const Device device(0);
  std::vector<float> parameters(kCount);
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (const Range& share : shares)
    optimizers.push_back(std::make_unique<Optimizer>(options, device, share));
  for (std::size_t i = 0; i < kCount; ++i) parameters[i] = drawn(i, -1);
  std::vector<float> gradients(kCount);
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < kCount; ++i) gradients[i] = drawn(i, step);
    for (const auto& optimizer : optimizers)
      optimizer->update(parameters.data(), gradients.data(), static_cast<std::uint64_t>(step) + 1);
  }
  return parameters;
}

double sgd(std::size_t i, const OptimizerOptions& options) {
  double parameter = drawn(i, -1);
  double velocity = 0;
  for (int step = 0; step < kSteps; ++step) {
    velocity = options.momentum * velocity + drawn(i, step) + options.weight_decay * parameter;
    parameter -= options.rate * velocity;
  }
  return parameter;
}

double adamw(std::size_t i, const OptimizerOptions& options) {
  double parameter = drawn(i, -1);
  double mean = 0;
  double square = 0;
  for (int step = 0; step < kSteps; ++step) {
    const double gradient = drawn(i, step);
    parameter *= 1 - static_cast<double>(options.rate) * options.weight_decay;
    mean = options.beta1 * mean + (1 - options.beta1) * gradient;
    square = options.beta2 * square + (1 - options.beta2) * gradient * gradient;
    const double corrected_mean = mean / (1 - std::pow(options.beta1, step + 1));
    const double corrected_square = square / (1 - std::pow(options.beta2, step + 1));
    parameter -= options.rate * corrected_mean / (std::sqrt(corrected_square) + options.epsilon);
  }
  return parameter;
}

class Updates : public testing::TestWithParam<OptimizerOptions::Kind> {};

TEST_P(Updates, FollowTheFormula) {
  OptimizerOptions options{.kind = GetParam(), .rate = 0.01F, .weight_decay = 0.1F};
  const std::vector<float> got = run(options, {{0, kCount}});
  for (std::size_t i = 0; i < kCount; ++i) {
    const double wanted =
        GetParam() == OptimizerOptions::Kind::sgd ? sgd(i, options) : adamw(i, options);
    ASSERT_NEAR(got[i], wanted, 1e-5) << i;
  }
}

TEST_P(Updates, InSharesGiveTheSameBits) {
  OptimizerOptions options{.kind = GetParam(), .rate = 0.01F};
  EXPECT_EQ(run(options, {{0, kCount}}), run(options, {{0, 30}, {30, 60}, {60, kCount}}));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Updates, testing::Values(OptimizerOptions::Kind::sgd, OptimizerOptions::Kind::adamw),
    [](const auto& suite) { return suite.param == OptimizerOptions::Kind::sgd ? "sgd" : "adamw"; });

}  // namespace
}  // namespace ddp_trainer
