// SPDX-License-Identifier: Apache-2.0
// The three products of a dense layer, with row-major matrices. multiply_add() and
// multiply_transposed() sum each element in an order that does not depend on the number of rows, so
// that a sample's results are bit-identical in every batch.
#pragma once

#include <cstddef>

namespace ddp_trainer {

struct Dense {
  std::size_t rows;  // number of samples
  std::size_t inputs;
  std::size_t outputs;
};

// Computes y[rows x outputs] = x[rows x inputs] w[inputs x outputs] + bias.
void multiply_add(const float* x, const float* w, const float* bias, float* y, Dense shape);

// Computes dx[rows x inputs] = dy[rows x outputs] w^T.
void multiply_transposed(const float* dy, const float* w, float* dx, Dense shape);

// Adds x^T dy to gradient[inputs x outputs], and the sums of dy's columns to `bias_gradient`. Clips
// each value to +-`limit` and rounds it to a multiple of 2^-21 before adding it.
void add_gradient(const float* x, const float* dy, float* gradient, float* bias_gradient,
                  Dense shape, float limit);

// Returns a limit for add_gradient() that keeps a sum of `parts` gradients within +-8, where float
// represents multiples of 2^-21 exactly. The bits of the sum then depend neither on the order of
// summation nor on the number of ranks.
[[nodiscard]] float gradient_limit(std::size_t parts);

}  // namespace ddp_trainer
