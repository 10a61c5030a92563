// SPDX-License-Identifier: Apache-2.0
// A multi-layer perceptron with ReLUs and a softmax, differentiated by hand.
#pragma once

#include "device.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddp_trainer {

struct Layer {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::size_t weights = 0;  // where they start among all parameters: inputs x outputs
  std::size_t biases = 0;   // right behind
  [[nodiscard]] std::size_t end() const { return biases + outputs; }
};

// Where each layer's parameters, and likewise their gradients, lie in one flat buffer: those of the
// last layer first, in the order in which the backward pass has their gradients ready.
class Layout {
 public:
  // `widths`: inputs, hidden layers, outputs.
  explicit Layout(const std::vector<std::size_t>& widths);

  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }  // first to last
  [[nodiscard]] std::size_t parameters() const { return layers_.front().end(); }

 private:
  std::vector<Layer> layers_;
};

// The same for the same seed, everywhere.
void initialize(const Layout& layout, std::uint64_t seed, float* parameters);

// Sums over samples, exact in any order: what ranks add up.
struct Score {
  // The result for one sample; two million of them fit a sum.
  static constexpr double kHighestLoss = 16384;

  std::int64_t loss = 0;     // in units of 2^-28
  std::int64_t correct = 0;  // samples
  std::int64_t samples = 0;
  std::int64_t diverged = 0;  // samples whose loss is higher, or no number; not in `loss`

  void add(double sample_loss, bool is_correct);
  void add(const Score& other);
  [[nodiscard]] double mean_loss() const;
  [[nodiscard]] double accuracy() const;
};

// The activations of up to `rows` samples in device memory, and the kernels that fill them.
class Network {
 public:
  // `gradient_limit` as add_gradient() takes it.
  Network(const Device& device, const Layout& layout, std::size_t rows, float gradient_limit);

  // Kernels; `rows` samples of the input and their classes.
  void forward(const float* parameters, const float* input, std::size_t rows);
  // Loss and hits of the last forward pass; begin_backward() sets out from the derivative of
  // `scale` times the sum of its losses.
  [[nodiscard]] Score score(const std::uint8_t* classes, std::size_t rows);
  void begin_backward(const std::uint8_t* classes, std::size_t rows, float scale);
  // Handles one layer, from the last to the first: adds to its part of `gradients`.
  void backward(std::size_t number, const float* parameters, const float* input, float* gradients,
                std::size_t rows);

 private:
  const Layout& layout_;
  float gradient_limit_;
  std::vector<std::unique_ptr<Buffer<float>>> outputs_;  // of each layer
  std::vector<std::unique_ptr<Buffer<float>>> deltas_;   // derivatives of the loss by them
};

}  // namespace ddp_trainer
