// SPDX-License-Identifier: Apache-2.0
// Implements the products with loops that compilers can vectorise without reordering a sum.
#include "matrix.h"

#include <algorithm>
#include <array>

namespace ddp_trainer {
namespace {

constexpr std::size_t kBlock = 256;  // number of outputs whose sums fit in the L1 cache

// Rounds a value between -2 and 2 to the nearest multiple of 2^-21. The sum with kShift is between
// 4 and 8, where floats have this spacing.
inline float round_to_grid(float value) {
  constexpr float kShift = 6;
  return (value + kShift) - kShift;
}

}  // namespace

void multiply_add(const float* x, const float* w, const float* bias, float* y, Dense shape) {
  const auto [rows, inputs, outputs] = shape;
  for (std::size_t row = 0; row < rows; ++row) std::copy(bias, bias + outputs, y + row * outputs);
  for (std::size_t input = 0; input < inputs; ++input) {
    const float* const from = w + input * outputs;
    for (std::size_t row = 0; row < rows; ++row) {
      const float factor = x[row * inputs + input];
      if (factor == 0.0F) continue;  // about half of the factors are 0 after a ReLU
      float* const to = y + row * outputs;
      for (std::size_t output = 0; output < outputs; ++output) to[output] += factor * from[output];
    }
  }
}

void multiply_transposed(const float* dy, const float* w, float* dx, Dense shape) {
  const auto [rows, inputs, outputs] = shape;
  constexpr std::size_t kLanes = 16;
  for (std::size_t input = 0; input < inputs; ++input) {
    const float* const weights = w + input * outputs;
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const from = dy + row * outputs;
      std::array<float, kLanes> sums{};
      std::size_t output = 0;
      for (; output + kLanes <= outputs; output += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane)
          sums[lane] += from[output + lane] * weights[output + lane];
      }
      float sum = 0;
      for (; output < outputs; ++output) sum += from[output] * weights[output];
      for (const float part : sums) sum += part;
      dx[row * inputs + input] = sum;
    }
  }
}

float gradient_limit(std::size_t parts) {
  constexpr float kExact = 8;  // 2^24 multiples of 2^-21
  constexpr float kRounded = 2;
  return std::min(kExact / static_cast<float>(parts), kRounded);
}

void add_gradient(const float* x, const float* dy, float* gradient, float* bias_gradient,
                  Dense shape, float limit) {
  const auto [rows, inputs, outputs] = shape;
  std::array<float, kBlock> sums{};
  for (std::size_t first = 0; first < outputs; first += kBlock) {
    const std::size_t count = std::min(kBlock, outputs - first);
    for (std::size_t input = 0; input <= inputs; ++input) {  // an additional input, 1, for the bias
      std::fill_n(sums.begin(), count, 0.0F);
      for (std::size_t row = 0; row < rows; ++row) {
        const float factor = input == inputs ? 1.0F : x[row * inputs + input];
        if (factor == 0.0F) continue;
        const float* const from = dy + row * outputs + first;
        for (std::size_t i = 0; i < count; ++i) sums[i] += factor * from[i];
      }
      float* const to = (input == inputs ? bias_gradient : gradient + input * outputs) + first;
      for (std::size_t i = 0; i < count; ++i)
        to[i] += round_to_grid(std::clamp(sums[i], -limit, limit));
    }
  }
}

}  // namespace ddp_trainer
