// SPDX-License-Identifier: Apache-2.0
// The checks before training: that every rank can begin, and that all begin with the same settings,
// data and parameters. If a check fails, all ranks throw the same SharedError.
#pragma once

#include "gradient_sync.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace ddp_trainer {

// Returns the facts of all ranks, indexed by rank. `Fact` must be trivially copyable. Blocks until
// all ranks have called the function.
template <class Fact>
[[nodiscard]] std::vector<Fact> gather(const Fact& mine, const Rank& rank) {
  const auto ranks = static_cast<std::size_t>(rank.ranks);
  Buffer<Fact> all(*rank.device, ranks);
  all.host()[rank.rank] = mine;
  check(hcclAllGather(all.device(static_cast<std::size_t>(rank.rank)), all.device(), sizeof(Fact),
                      hcclUint8, rank.communicator, rank.network->handle()),
        "hcclAllGather");
  rank.network->synchronize();
  return {all.host(), all.host() + ranks};
}

// `failure` is the reason why this rank cannot begin, or empty. Blocks until all ranks have called
// the function. Throws SharedError on all ranks if any rank has a failure.
void require_no_failure(const std::string& failure, const Rank& rank);

// A rank's settings and state when its training begins.
struct Start {
  std::string training;          // settings from the command line
  std::uint32_t data = 0;        // checksum of the data
  std::uint32_t parameters = 0;  // checksum of the initial parameters
  std::uint64_t steps = 0;       // number of steps completed before this run
};

// Throws SharedError on all ranks if a rank's start differs from rank 0's. Blocks until all ranks
// have called the function.
void require_same_start(const Start& mine, const Rank& rank);

}  // namespace ddp_trainer
