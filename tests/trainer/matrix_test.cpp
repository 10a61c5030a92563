// SPDX-License-Identifier: Apache-2.0
// Compares the trainer's matrix products with plain loops in double precision, and tests that the
// products are bitwise reproducible.
#include "matrix.h"

#include "errors.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ddp_trainer {
namespace {

using Floats = std::vector<float>;

Floats drawn(std::size_t count, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> between(-scale, scale);
  Floats values(count);
  for (float& value : values) value = random() % 5 == 0 ? 0.0F : between(random);
  return values;
}

void expect_near(const Floats& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-4) << i;
}

class Products : public testing::TestWithParam<Dense> {};

TEST_P(Products, MatchPlainLoops) {
  const auto [rows, inputs, outputs] = GetParam();
  const Floats x = drawn(rows * inputs, 1);
  const Floats w = drawn(inputs * outputs, 2);
  const Floats bias = drawn(outputs, 3);
  const Floats dy = drawn(rows * outputs, 4, 0.01F);
  std::vector<double> y(rows * outputs);
  std::vector<double> dx(rows * inputs);
  std::vector<double> dw(inputs * outputs, 0.25);
  std::vector<double> db(outputs, 0.5);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t output = 0; output < outputs; ++output) {
      const double delta = dy[row * outputs + output];
      y[row * outputs + output] = bias[output];
      db[output] += delta;
      for (std::size_t input = 0; input < inputs; ++input) {
        const double weight = w[input * outputs + output];
        y[row * outputs + output] += x[row * inputs + input] * weight;
        dx[row * inputs + input] += delta * weight;
        dw[input * outputs + output] += x[row * inputs + input] * delta;
      }
    }
  }
  Floats result(y.size());
  multiply_add(x.data(), w.data(), bias.data(), result.data(), GetParam());
  expect_near(result, y);
  result.assign(dx.size(), NAN);
  multiply_transposed(dy.data(), w.data(), result.data(), GetParam());
  expect_near(result, dx);
  result.assign(dw.size(), 0.25F);
  Floats bias_gradient(outputs, 0.5F);
  add_gradient(x.data(), dy.data(), result.data(), bias_gradient.data(), GetParam(), 2);
  expect_near(result, dw);
  expect_near(bias_gradient, db);
}

TEST_P(Products, OfASampleAreIndependentOfOtherSamples) {
  const auto [rows, inputs, outputs] = GetParam();
  const Floats x = drawn(rows * inputs, 5);
  const Floats w = drawn(inputs * outputs, 6);
  const Floats bias = drawn(outputs, 7);
  Floats together(rows * outputs);
  multiply_add(x.data(), w.data(), bias.data(), together.data(), GetParam());
  Floats alone(outputs);
  const std::size_t last = rows - 1;
  multiply_add(x.data() + last * inputs, w.data(), bias.data(), alone.data(), {1, inputs, outputs});
  EXPECT_EQ(alone, Floats(together.end() - static_cast<std::ptrdiff_t>(outputs), together.end()));
}

// The sum of four batches must not depend on their order, for small, near-limit and clipped
// gradients.
TEST_P(Products, GradientSumsAreBitwiseIndependentOfOrder) {
  const Dense shape = GetParam();
  const std::size_t weights = shape.inputs * shape.outputs;
  for (const float scale : {0.01F, 0.5F, 3.0F, 1000.0F}) {
    const auto sum_of = [&](std::initializer_list<unsigned> batches) {
      Floats sum(weights + shape.outputs);
      for (const unsigned batch : batches) {
        const Floats x = drawn(shape.rows * shape.inputs, 10 + batch);
        const Floats dy = drawn(shape.rows * shape.outputs, 20 + batch, scale);
        add_gradient(x.data(), dy.data(), sum.data(), sum.data() + weights, shape,
                     gradient_limit(4));
      }
      return sum;
    };
    const Floats one = sum_of({0, 1, 2, 3});
    EXPECT_EQ(one, sum_of({3, 1, 0, 2}));
    Floats two = sum_of({2, 3});
    const Floats rest = sum_of({1, 0});
    for (std::size_t i = 0; i < two.size(); ++i) two[i] += rest[i];
    EXPECT_EQ(one, two);
  }
}

TEST(GradientLimit, KeepsSumsBelowEight) {
  for (const std::size_t parts : {1U, 2U, 3U, 4U, 5U, 8U, 100U}) {
    EXPECT_LE(gradient_limit(parts) * static_cast<float>(parts), 8) << parts;
    EXPECT_LE(gradient_limit(parts), 2);
  }
  EXPECT_EQ(gradient_limit(8), 1);
}

// Gradients must be rounded to the nearest multiple of 2^-21, on both sides of zero.
TEST(GradientLimit, RoundsToMultiples) {
  const float one = 1;
  const float zero = 0;
  for (const float value : drawn(2000, 30, 2)) {
    float sum = 0;
    float bias = 0;
    add_gradient(&one, &value, &sum, &bias, {1, 1, 1}, 2);
    EXPECT_EQ(std::nearbyint(sum * 0x1p21F), sum * 0x1p21F) << value;
    EXPECT_NEAR(sum, value, 0x1p-22);
    EXPECT_EQ(bias, sum);
    add_gradient(&zero, &value, &sum, &bias, {1, 1, 1}, 0.5F);
    EXPECT_EQ(bias - sum, std::clamp(sum, -0.5F, 0.5F));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Products,
                         testing::Values(Dense{1, 1, 1}, Dense{16, 64, 128}, Dense{3, 17, 300},
                                         Dense{7, 5, 15}, Dense{2, 130, 257}),
                         [](const auto& suite) {
                           const Dense& shape = suite.param;
                           return text(shape.rows, "x", shape.inputs, "x", shape.outputs);
                         });

}  // namespace
}  // namespace ddp_trainer
