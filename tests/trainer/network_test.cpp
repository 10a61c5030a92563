// SPDX-License-Identifier: Apache-2.0
// The derivatives against differences of the loss.
#include "network.h"

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
    for (float& value : parameters_) value += 0.05F * between(random);  // biases too
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

TEST_F(Derivatives, AreTheSlopesOfTheLoss) {
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

TEST_F(Derivatives, ScoresCountHits) {
  network_.forward(parameters_.data(), input_.data(), kRows);
  const Score score = network_.score(classes_, kRows);
  EXPECT_EQ(score.samples, static_cast<std::int64_t>(kRows));
  EXPECT_GE(score.correct, 0);
  EXPECT_LE(score.correct, score.samples);
  EXPECT_GT(score.mean_loss(), 0);
}

TEST(Scores, CountWhatHasNoLoss) {
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

}  // namespace
}  // namespace ddp_trainer
