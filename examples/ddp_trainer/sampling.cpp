// SPDX-License-Identifier: Apache-2.0
// The order of an epoch.
#include "sampling.h"

#include <numeric>
#include <random>
#include <utility>

namespace ddp_trainer {

std::vector<std::uint32_t> shuffled(std::size_t samples, std::uint64_t seed, int epoch) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(epoch));
  // By hand, because std::shuffle is not the same everywhere.
  for (std::size_t left = samples; left > 1; --left)
    std::swap(order[left - 1], order[random() % left]);
  return order;
}

}  // namespace ddp_trainer
