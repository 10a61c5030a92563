// SPDX-License-Identifier: Apache-2.0
// Implements the forward and backward passes.
#include "network.h"

#include "matrix.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace ddp_trainer {
namespace {

constexpr double kLossUnit = 0x1p28;

// The result for one sample: the index of the highest output, and log(sum(exp(outputs))).
struct Softmax {
  Softmax(const float* outputs, std::size_t count)
      : largest(static_cast<std::size_t>(std::max_element(outputs, outputs + count) - outputs)) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
      sum += std::exp(static_cast<double>(outputs[i]) - outputs[largest]);
    log_sum = std::log(sum) + outputs[largest];
  }

  std::size_t largest;
  double log_sum = 0;
};

}  // namespace

Layout::Layout(const std::vector<std::size_t>& widths) {
  layers_.resize(widths.size() - 1);
  std::size_t offset = 0;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    layer.inputs = widths[i];
    layer.outputs = widths[i + 1];
    layer.weights = offset;
    layer.biases = offset + layer.inputs * layer.outputs;
    offset = layer.end();
  }
}

void initialize(const Layout& layout, std::uint64_t seed, float* parameters) {
  std::mt19937_64 random(seed);
  // Weights are uniformly distributed with He's variance. They are computed from the generator's
  // bits, because std::uniform_real_distribution differs between standard libraries.
  for (const Layer& layer : layout.layers()) {
    const double bound = std::sqrt(6.0 / static_cast<double>(layer.inputs));
    for (std::size_t i = layer.weights; i < layer.biases; ++i) {
      const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
      parameters[i] = static_cast<float>((2 * unit - 1) * bound);
    }
    std::fill(parameters + layer.biases, parameters + layer.end(), 0.0F);
  }
}

void Score::add(double sample_loss, bool is_correct) {
  if (sample_loss < kHighestLoss) {
    loss += std::llround(sample_loss * kLossUnit);
  } else {
    ++diverged;  // also counts NaN
  }
  correct += is_correct ? 1 : 0;
  ++samples;
}

void Score::add(const Score& other) {
  loss += other.loss;
  correct += other.correct;
  samples += other.samples;
  diverged += other.diverged;
}

double Score::mean_loss() const {
  return samples == 0 ? 0 : static_cast<double>(loss) / kLossUnit / static_cast<double>(samples);
}

double Score::accuracy() const {
  return samples == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(samples);
}

Network::Network(const Device& device, const Layout& layout, std::size_t rows, float gradient_limit)
    : layout_(layout), gradient_limit_(gradient_limit) {
  for (const Layer& layer : layout.layers()) {
    outputs_.push_back(std::make_unique<Buffer<float>>(device, rows * layer.outputs));
    deltas_.push_back(std::make_unique<Buffer<float>>(device, rows * layer.outputs));
  }
}

void Network::forward(const float* parameters, const float* input, std::size_t rows) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Layer& layer = layout_.layers()[i];
    float* const output = outputs_[i]->host();
    multiply_add(input, parameters + layer.weights, parameters + layer.biases, output,
                 {rows, layer.inputs, layer.outputs});
    if (i + 1 < outputs_.size()) {
      const std::size_t count = rows * layer.outputs;
      for (std::size_t at = 0; at < count; ++at) output[at] = std::max(output[at], 0.0F);
    }
    input = output;
  }
}

Score Network::score(const std::uint8_t* classes, std::size_t rows) {
  Score score;
  const std::size_t count = layout_.layers().back().outputs;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const outputs = outputs_.back()->host() + row * count;
    const Softmax softmax(outputs, count);
    score.add(softmax.log_sum - outputs[classes[row]], softmax.largest == classes[row]);
  }
  return score;
}

void Network::begin_backward(const std::uint8_t* classes, std::size_t rows, float scale) {
  const std::size_t count = layout_.layers().back().outputs;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const outputs = outputs_.back()->host() + row * count;
    float* const delta = deltas_.back()->host() + row * count;
    const Softmax softmax(outputs, count);
    for (std::size_t i = 0; i < count; ++i) {
      const double probability = std::exp(outputs[i] - softmax.log_sum);
      delta[i] = static_cast<float>(probability - (i == classes[row] ? 1 : 0)) * scale;
    }
  }
}

void Network::backward(std::size_t number, const float* parameters, const float* input,
                       float* gradients, std::size_t rows) {
  const Layer& layer = layout_.layers()[number];
  const float* const below = number == 0 ? input : outputs_[number - 1]->host();
  const float* const delta = deltas_[number]->host();
  add_gradient(below, delta, gradients + layer.weights, gradients + layer.biases,
               {rows, layer.inputs, layer.outputs}, gradient_limit_);
  if (number == 0) return;
  float* const delta_below = deltas_[number - 1]->host();
  multiply_transposed(delta, parameters + layer.weights, delta_below,
                      {rows, layer.inputs, layer.outputs});
  const std::size_t count = rows * layer.inputs;
  for (std::size_t at = 0; at < count; ++at) {
    if (below[at] <= 0) delta_below[at] = 0;  // the ReLU has blocked this output
  }
}

}  // namespace ddp_trainer
