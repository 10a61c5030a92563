// SPDX-License-Identifier: Apache-2.0
// The three products of a dense layer, row-major. Each element of a result is summed in an order
// that does not depend on the number of rows, so that a sample gives the same bits in every batch.
#pragma once

#include <cstddef>

namespace ddp_trainer {

// y[rows x outputs] = x[rows x inputs] w[inputs x outputs] + bias
void multiply_add(const float* x, const float* w, const float* bias, float* y, std::size_t rows,
                  std::size_t inputs, std::size_t outputs);

// dx[rows x inputs] = dy[rows x outputs] w^T
void multiply_transposed(const float* dy, const float* w, float* dx, std::size_t rows,
                         std::size_t inputs, std::size_t outputs);

// Adds x^T dy to gradient[inputs x outputs], and the sums of dy's columns to `bias_gradient`, each
// rounded to a multiple of 2^-24 first. Sums of such numbers are exact in float as long as they
// stay below 1: the same bits in whatever order and parts they are added up, and so for every
// number of ranks.
void add_gradient(const float* x, const float* dy, float* gradient, float* bias_gradient,
                  std::size_t rows, std::size_t inputs, std::size_t outputs);

}  // namespace ddp_trainer
