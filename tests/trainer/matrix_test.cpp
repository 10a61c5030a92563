// SPDX-License-Identifier: Apache-2.0
// The products against plain loops in double, and the promises about their bits.
#include "matrix.h"

#include "errors.h"

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

struct Shape {
  std::size_t rows, inputs, outputs;
};

class Products : public testing::TestWithParam<Shape> {};

TEST_P(Products, AreThoseOfPlainLoops) {
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
  multiply_add(x.data(), w.data(), bias.data(), result.data(), rows, inputs, outputs);
  expect_near(result, y);
  result.assign(dx.size(), NAN);
  multiply_transposed(dy.data(), w.data(), result.data(), rows, inputs, outputs);
  expect_near(result, dx);
  result.assign(dw.size(), 0.25F);
  Floats bias_gradient(outputs, 0.5F);
  add_gradient(x.data(), dy.data(), result.data(), bias_gradient.data(), rows, inputs, outputs);
  expect_near(result, dw);
  expect_near(bias_gradient, db);
}

TEST_P(Products, OfASampleDoNotDependOnTheOthers) {
  const auto [rows, inputs, outputs] = GetParam();
  const Floats x = drawn(rows * inputs, 5);
  const Floats w = drawn(inputs * outputs, 6);
  const Floats bias = drawn(outputs, 7);
  Floats together(rows * outputs);
  multiply_add(x.data(), w.data(), bias.data(), together.data(), rows, inputs, outputs);
  Floats alone(outputs);
  const std::size_t last = rows - 1;
  multiply_add(x.data() + last * inputs, w.data(), bias.data(), alone.data(), 1, inputs, outputs);
  EXPECT_EQ(alone, Floats(together.end() - static_cast<std::ptrdiff_t>(outputs), together.end()));
}

// Four batches, added up in two ways.
TEST_P(Products, GradientsAddUpToTheSameBitsInAnyOrder) {
  const auto [rows, inputs, outputs] = GetParam();
  const auto sum_of = [&](std::initializer_list<unsigned> batches) {
    Floats sum(inputs * outputs + outputs);
    for (const unsigned batch : batches) {
      const Floats x = drawn(rows * inputs, 10 + batch);
      const Floats dy = drawn(rows * outputs, 20 + batch, 0.01F);
      add_gradient(x.data(), dy.data(), sum.data(), sum.data() + inputs * outputs, rows, inputs,
                   outputs);
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

INSTANTIATE_TEST_SUITE_P(Shapes, Products,
                         testing::Values(Shape{1, 1, 1}, Shape{16, 64, 128}, Shape{3, 17, 300},
                                         Shape{7, 5, 15}, Shape{2, 130, 257}),
                         [](const auto& suite) {
                           const Shape& shape = suite.param;
                           return text(shape.rows, "x", shape.inputs, "x", shape.outputs);
                         });

}  // namespace
}  // namespace ddp_trainer
