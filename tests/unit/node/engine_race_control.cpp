// SPDX-License-Identifier: Apache-2.0
// This program is built without the memory ordering of "tile done". The race detector must report
// that ranks read results that other ranks may still be writing.
#include "engine_ranks.h"

#include <cmath>

int main() {
  using namespace hccl::node;
  EngineRanks ranks(2);
  const std::size_t count = 100'000;
  ranks.run([&](int rank) {
    const auto lane = ranks.make_lane(rank);
    const std::uint64_t send = ranks.upload(rank, random_values(count, 1));
    const std::uint64_t recv = ranks.upload(rank, std::vector<float>(count, 0.0F));
    for (int round = 0; round < 200; ++round) {
      ranks.engine(rank).execute(*lane, all_reduce_call(count, send, recv));
      static_cast<void>(ranks.read(rank, recv, count));
    }
  });
  return 0;
}
