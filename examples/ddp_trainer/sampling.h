// SPDX-License-Identifier: Apache-2.0
// Which samples make up which batch, and which rank takes which of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddp_trainer {

// The numbers below `samples` in the order of an epoch: the same for the same seed, everywhere.
[[nodiscard]] std::vector<std::uint32_t> shuffled(std::size_t samples, std::uint64_t seed,
                                                  int epoch);

// By how many pixels a sample is moved in an epoch, so that a network does not learn it by heart:
// three in ten by at most one pixel each way.
struct Shift {
  int right = 0;
  int down = 0;
};
[[nodiscard]] Shift shift_of(std::uint32_t sample, std::uint64_t seed, int epoch);

// A step takes `batch` samples in the order of the epoch, cut into micro-batches of `micro_batch`;
// each rank takes as many of them, one after the other. Samples beyond whole batches wait for
// another epoch's order.
struct Sampling {
  std::size_t batch = 0;
  std::size_t micro_batch = 0;
  int ranks = 1;

  [[nodiscard]] std::size_t steps(std::size_t samples) const { return samples / batch; }
  [[nodiscard]] std::size_t micro_batches() const {  // of a rank, in a step
    return batch / micro_batch / static_cast<std::size_t>(ranks);
  }
  [[nodiscard]] std::size_t own_samples() const { return micro_batches() * micro_batch; }
  // Where a rank's samples of a step begin in the order of the epoch.
  [[nodiscard]] std::size_t first(std::size_t step, int rank) const {
    return step * batch + static_cast<std::size_t>(rank) * own_samples();
  }
};

}  // namespace ddp_trainer
