// SPDX-License-Identifier: Apache-2.0
// Computes the order of the samples in an epoch, and their shifts.
#include "sampling.h"

#include <numeric>
#include <random>
#include <utility>

namespace ddp_trainer {
namespace {

// Hashes a number with SplitMix64 (Steele, Lea and Flood).
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

std::vector<std::uint32_t> shuffled(std::size_t samples, std::uint64_t seed, int epoch) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(epoch));
  // Does not use std::shuffle, which differs between standard libraries.
  for (std::size_t left = samples; left > 1; --left)
    std::swap(order[left - 1], order[random() % left]);
  return order;
}

Shift shift_of(std::uint32_t sample, std::uint64_t seed, int epoch) {
  std::uint64_t bits = mixed(mixed(seed + static_cast<std::uint64_t>(epoch)) + sample);
  const auto draw = [&bits](std::uint64_t below) {
    const std::uint64_t value = bits % below;
    bits /= below;
    return static_cast<int>(value);
  };
  if (draw(10) >= 3) return {};
  const int right = draw(3) - 1;
  return {right, draw(3) - 1};
}

}  // namespace ddp_trainer
