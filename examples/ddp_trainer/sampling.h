// SPDX-License-Identifier: Apache-2.0
// Assigns an epoch's samples to batches, and each batch's samples to ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddp_trainer {

// Returns the sample indices 0 to samples - 1, shuffled for an epoch. The order depends only on the
// arguments, not on the machine.
[[nodiscard]] std::vector<std::uint32_t> shuffled(std::size_t samples, std::uint64_t seed,
                                                  int epoch);

// The shift of a sample in an epoch, in pixels. About three samples in ten are shifted by at most
// one pixel horizontally and vertically, so that the network does not memorise the samples.
struct Shift {
  int right = 0;
  int down = 0;
};
[[nodiscard]] Shift shift_of(std::uint32_t sample, std::uint64_t seed, int epoch);

// A step uses `batch` consecutive samples of the epoch's order, split into micro-batches of
// `micro_batch` samples. Each rank gets the same number of consecutive micro-batches. An epoch does
// not use the samples after its last whole batch.
struct Sampling {
  std::size_t batch = 0;
  std::size_t micro_batch = 0;
  int ranks = 1;

  [[nodiscard]] std::size_t steps(std::size_t samples) const { return samples / batch; }
  [[nodiscard]] std::size_t micro_batches() const {  // per rank and step
    return batch / micro_batch / static_cast<std::size_t>(ranks);
  }
  [[nodiscard]] std::size_t own_samples() const { return micro_batches() * micro_batch; }
  // Returns the position, in the epoch's order, of a rank's first sample in a step.
  [[nodiscard]] std::size_t first(std::size_t step, int rank) const {
    return step * batch + static_cast<std::size_t>(rank) * own_samples();
  }
};

}  // namespace ddp_trainer
