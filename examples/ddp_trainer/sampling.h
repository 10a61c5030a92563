// SPDX-License-Identifier: Apache-2.0
// Assigns samples to batches, and the samples of a batch to ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddp_trainer {

// Returns the numbers below `samples` in the order of an epoch, which is the same for the same seed
// on every machine.
[[nodiscard]] std::vector<std::uint32_t> shuffled(std::size_t samples, std::uint64_t seed,
                                                  int epoch);

// The shift of a sample in an epoch in pixels, so that a network does not memorise it: three in ten
// by at most one pixel in each direction.
struct Shift {
  int right = 0;
  int down = 0;
};
[[nodiscard]] Shift shift_of(std::uint32_t sample, std::uint64_t seed, int epoch);

// A step takes `batch` samples in the order of the epoch, split into micro-batches of
// `micro_batch`; each rank takes the same number of consecutive ones. Samples beyond whole batches
// are left out of the epoch.
struct Sampling {
  std::size_t batch = 0;
  std::size_t micro_batch = 0;
  int ranks = 1;

  [[nodiscard]] std::size_t steps(std::size_t samples) const { return samples / batch; }
  [[nodiscard]] std::size_t micro_batches() const {  // per rank and step
    return batch / micro_batch / static_cast<std::size_t>(ranks);
  }
  [[nodiscard]] std::size_t own_samples() const { return micro_batches() * micro_batch; }
  // Returns the position of a rank's first sample of a step in the order of the epoch.
  [[nodiscard]] std::size_t first(std::size_t step, int rank) const {
    return step * batch + static_cast<std::size_t>(rank) * own_samples();
  }
};

}  // namespace ddp_trainer
