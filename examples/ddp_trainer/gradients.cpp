// SPDX-License-Identifier: Apache-2.0
// Converts gradients to bfloat16 and back.
#include "gradient_sync.h"
#include "trace.h"

#include <bit>

namespace ddp_trainer {
namespace {

// Rounds to nearest, ties to even. The value must be finite.
std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bfloat16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

}  // namespace

Gradients::Gradients(const Device& device, std::size_t count, bool bfloat16)
    : values_(device, count) {
  if (bfloat16) halves_ = std::make_unique<Buffer<std::uint16_t>>(device, count);
}

void Gradients::to_wire(const Rank& rank, std::size_t begin, std::size_t end) {
  if (!halves_) return;
  rank.trace->launch(*rank.compute, "to bfloat16",
                     [from = values_.host(), to = halves_->host(), begin, end] {
                       for (std::size_t i = begin; i < end; ++i) to[i] = to_bfloat16(from[i]);
                     });
}

void Gradients::from_wire(const Rank& rank, std::size_t begin, std::size_t end) {
  if (!halves_) return;
  rank.trace->launch(*rank.compute, "from bfloat16",
                     [from = halves_->host(), to = values_.host(), begin, end] {
                       for (std::size_t i = begin; i < end; ++i) to[i] = from_bfloat16(from[i]);
                     });
}

}  // namespace ddp_trainer
