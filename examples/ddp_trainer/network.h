// SPDX-License-Identifier: Apache-2.0
// A multi-layer perceptron with ReLUs and a softmax.
#pragma once

#include "device.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddp_trainer {

struct Layer {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::size_t weights = 0;  // offset of the inputs x outputs weights among all parameters
  std::size_t biases = 0;   // offset of the biases, which follow the weights
  [[nodiscard]] std::size_t end() const { return biases + outputs; }
};

// The positions of each layer's parameters in the parameter buffer, and of their gradients in the
// gradient buffer. The last layer comes first, because the backward pass completes its gradients
// first.
class Layout {
 public:
  // `widths` has the number of inputs, the width of each hidden layer, and the number of outputs.
  explicit Layout(const std::vector<std::size_t>& widths);

  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }  // from first to last
  [[nodiscard]] std::size_t parameters() const { return layers_.front().end(); }

 private:
  std::vector<Layer> layers_;
};

// Sets the initial parameters, which depend only on the seed and not on the machine.
void initialize(const Layout& layout, std::uint64_t seed, float* parameters);

// Totals over samples. They are integers, so summing them over ranks is exact in any order.
struct Score {
  // Only losses below this are added. The sum has room for two million of them.
  static constexpr double kHighestLoss = 16384;

  std::int64_t loss = 0;     // in units of 2^-28
  std::int64_t correct = 0;  // number of samples classified correctly
  std::int64_t samples = 0;
  std::int64_t diverged = 0;  // samples whose loss is NaN or at least kHighestLoss; not in `loss`

  void add(double sample_loss, bool is_correct);
  void add(const Score& other);
  [[nodiscard]] double mean_loss() const;
  [[nodiscard]] double accuracy() const;
};

// The activations of up to `rows` samples in device memory, and the kernels of the forward and
// backward passes.
class Network {
 public:
  // `gradient_limit` is the limit for add_gradient().
  Network(const Device& device, const Layout& layout, std::size_t rows, float gradient_limit);

  // Kernels, each for `rows` samples.
  void forward(const float* parameters, const float* input, std::size_t rows);
  // Returns the score of the last forward pass.
  [[nodiscard]] Score score(const std::uint8_t* classes, std::size_t rows);
  // Computes the derivatives of `scale` times the sum of the losses with respect to the outputs of
  // the last layer.
  void begin_backward(const std::uint8_t* classes, std::size_t rows, float scale);
  // Computes the backward pass of layer `number`, and adds to this layer's part of `gradients`.
  // Must be called for the layers from the last to the first.
  void backward(std::size_t number, const float* parameters, const float* input, float* gradients,
                std::size_t rows);

 private:
  const Layout& layout_;
  float gradient_limit_;
  std::vector<std::unique_ptr<Buffer<float>>> outputs_;  // one per layer
  std::vector<std::unique_ptr<Buffer<float>>>
      deltas_;  // derivatives of the scaled loss with respect to the outputs before the ReLU
};

}  // namespace ddp_trainer
