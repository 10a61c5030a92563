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
  std::size_t weights = 0;  // offset among all parameters: inputs x outputs
  std::size_t biases = 0;   // offset, directly behind
  [[nodiscard]] std::size_t end() const { return biases + outputs; }
};

// The positions of each layer's parameters, and likewise of their gradients, in one flat buffer:
// those of the last layer first, in the order in which the backward pass completes their gradients.
class Layout {
 public:
  // `widths` lists inputs, hidden layers, outputs.
  explicit Layout(const std::vector<std::size_t>& widths);

  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }  // first to last
  [[nodiscard]] std::size_t parameters() const { return layers_.front().end(); }

 private:
  std::vector<Layer> layers_;
};

// Sets the initial parameters, which are the same for the same seed on every machine.
void initialize(const Layout& layout, std::uint64_t seed, float* parameters);

// Sums over samples, which ranks add up exactly in any order.
struct Score {
  // The limit for one sample; two million of them fit a sum.
  static constexpr double kHighestLoss = 16384;

  std::int64_t loss = 0;     // in units of 2^-28
  std::int64_t correct = 0;  // samples
  std::int64_t samples = 0;
  std::int64_t diverged = 0;  // samples whose loss is higher, or NaN; not in `loss`

  void add(double sample_loss, bool is_correct);
  void add(const Score& other);
  [[nodiscard]] double mean_loss() const;
  [[nodiscard]] double accuracy() const;
};

// The activations of up to `rows` samples in device memory, and the kernels that fill them.
class Network {
 public:
  // `gradient_limit` is that of add_gradient().
  Network(const Device& device, const Layout& layout, std::size_t rows, float gradient_limit);

  // The following are kernels for `rows` samples of the input and their classes.
  void forward(const float* parameters, const float* input, std::size_t rows);
  // Return the loss and the hits of the last forward pass, and start the backward pass with the
  // derivative of `scale` times the sum of its losses.
  [[nodiscard]] Score score(const std::uint8_t* classes, std::size_t rows);
  void begin_backward(const std::uint8_t* classes, std::size_t rows, float scale);
  // Handles one layer, from the last to the first: adds to its part of `gradients`.
  void backward(std::size_t number, const float* parameters, const float* input, float* gradients,
                std::size_t rows);

 private:
  const Layout& layout_;
  float gradient_limit_;
  std::vector<std::unique_ptr<Buffer<float>>> outputs_;  // of each layer
  std::vector<std::unique_ptr<Buffer<float>>>
      deltas_;  // derivatives of the loss with respect to them
};

}  // namespace ddp_trainer
