// SPDX-License-Identifier: Apache-2.0
// Pairwise all-to-all: in round k, ranks whose numbers add up to k modulo n exchange their blocks,
// as in a round-robin tournament. R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of
// collective communication operations in MPICH", 2005, describe a pairwise exchange for powers of
// two. The all-to-all takes n - 1 steps, in each of which a rank sends and receives one block. An
// in-place call takes one more step, because each block is copied to scratch before the peer's
// block replaces it.
#include "algorithms/algorithms.h"
#include "algorithms/numbering.h"
#include "schedule/builder.h"

#include <vector>

namespace hccl::algorithms {

using schedule::input;
using schedule::output;

Schedule pairwise_all_to_all(const Shape& shape) {
  std::vector<std::int32_t> peers;
  for (std::int32_t round = 0; round < shape.rank_count; ++round) {
    const std::int32_t peer = circular(round - shape.rank, shape.rank_count);
    if (peer != shape.rank) peers.push_back(peer);
  }
  const std::uint32_t own = chunk_of(shape.rank);
  const auto aside = [&](std::size_t i) {
    return schedule::scratch(static_cast<std::uint32_t>(i % 2), chunk_of(peers[i]));
  };
  schedule::ScheduleBuilder builder(shape, 1);
  if (!shape.in_place) {
    builder.copy(output(own), input(own));
  } else if (!peers.empty()) {
    builder.copy(aside(0), input(chunk_of(peers[0])));
    builder.end_step();
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    builder.send(peers[i], shape.in_place ? aside(i) : input(chunk_of(peers[i])));
    builder.receive(peers[i], output(chunk_of(peers[i])));
    if (shape.in_place && i + 1 < peers.size())
      builder.copy(aside(i + 1), input(chunk_of(peers[i + 1])));
    builder.end_step();
  }
  return std::move(builder).finish();
}

}  // namespace hccl::algorithms
