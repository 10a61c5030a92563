// SPDX-License-Identifier: Apache-2.0
// Before they train, ranks make sure that all can, and that all are about to train the same. If one
// of them objects, all throw its objection as a SharedError.
#pragma once

#include "gradient_sync.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace ddp_trainer {

// Everybody's, by rank. `Fact` is plain bytes.
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

// `failure`: why this rank cannot begin; empty if it can.
void require_no_failure(const std::string& failure, const Rank& rank);

// The facts with which a rank is about to begin.
struct Start {
  std::string training;          // what the command line asks for
  std::uint32_t data = 0;        // check sum
  std::uint32_t parameters = 0;  // check sum
  std::uint64_t steps = 0;       // done before
};

void require_same_start(const Start& mine, const Rank& rank);

}  // namespace ddp_trainer
