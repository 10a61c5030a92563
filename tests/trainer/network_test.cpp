// SPDX-License-Identifier: Apache-2.0
// Tests the derivatives of the trainer's network against finite differences of the loss, and the
// optimizers against their formulas in double precision.

#include "network.h"

#include "optimizer.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ddp_trainer {
namespace {

constexpr std::size_t kRows = 5;

class Derivatives : public testing::Test {
 protected:
  Derivatives() {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> between(0, 1);
    input_.resize(kRows * 6);
    for (float& value : input_) value = between(random);
    parameters_.resize(layout_.parameters());
    initialize(layout_, 42, parameters_.data());
    for (float& value : parameters_) value += 0.05F * between(random);  // so that biases are not 0
  }

  double loss() {
    network_.forward(parameters_.data(), input_.data(), kRows);
    const Score score = network_.score(classes_, kRows);
    return score.mean_loss();
  }

  Device device_{0};
  Layout layout_{{6, 8, 7, 10}};
  Network network_{device_, layout_, kRows, 2};
  std::vector<float> input_;
  std::vector<float> parameters_;
  const std::uint8_t classes_[kRows] = {3, 0, 9, 9, 1};
};

TEST_F(Derivatives, MatchFiniteDifferences) {
  std::vector<float> gradients(layout_.parameters());
  static_cast<void>(loss());
  network_.begin_backward(classes_, kRows, 1.0F / kRows);
  for (std::size_t layer = layout_.layers().size(); layer-- > 0;)
    network_.backward(layer, parameters_.data(), input_.data(), gradients.data(), kRows);
  int steep = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    constexpr float kStep = 1e-3F;
    const float before = parameters_[i];
    parameters_[i] = before + kStep;
    const double above = loss();
    parameters_[i] = before - kStep;
    const double below = loss();
    parameters_[i] = before;
    const double slope = (above - below) / (2 * static_cast<double>(kStep));
    ASSERT_NEAR(gradients[i], slope, 2e-3 + 0.02 * std::abs(slope)) << "parameter " << i;
    steep += std::abs(slope) > 0.01 ? 1 : 0;
  }
  EXPECT_GT(steep, 50);
}

TEST_F(Derivatives, ScoresCountCorrectSamples) {
  network_.forward(parameters_.data(), input_.data(), kRows);
  const Score score = network_.score(classes_, kRows);
  EXPECT_EQ(score.samples, static_cast<std::int64_t>(kRows));
  EXPECT_GE(score.correct, 0);
  EXPECT_LE(score.correct, score.samples);
  EXPECT_GT(score.mean_loss(), 0);
}

TEST(Scores, CountSamplesWithoutAFiniteLoss) {
  Score score;
  score.add(0.5, true);
  for (const double loss :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e9})
    score.add(loss, false);
  EXPECT_EQ(score.diverged, 3);
  Score sum;
  sum.add(score);
  sum.add(score);
  EXPECT_EQ(sum.diverged, 6);
  EXPECT_EQ(sum.samples, 8);
  EXPECT_EQ(sum.correct, 2);
}

TEST(Layout, PutsTheLastLayerFirst) {
  const Layout layout({6, 8, 7, 10});
  EXPECT_EQ(layout.layers()[2].weights, 0U);
  EXPECT_EQ(layout.layers()[1].weights, layout.layers()[2].end());
  EXPECT_EQ(layout.layers()[0].weights, layout.layers()[1].end());
  EXPECT_EQ(layout.parameters(), 6U * 8 + 8 + 8 * 7 + 7 + 7 * 10 + 10);
}

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

TEST_P(Updates, InPartsGiveTheSameBits) {
  OptimizerOptions options{.kind = GetParam(), .rate = 0.01F};
  EXPECT_EQ(run(options, {{0, kCount}}), run(options, {{0, 30}, {30, 60}, {60, kCount}}));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Updates, testing::Values(OptimizerOptions::Kind::sgd, OptimizerOptions::Kind::adamw),
    [](const auto& suite) { return suite.param == OptimizerOptions::Kind::sgd ? "sgd" : "adamw"; });

}  // namespace
}  // namespace ddp_trainer
