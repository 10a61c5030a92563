// SPDX-License-Identifier: Apache-2.0
// The collectives and their properties. A collective has the same number in shared memory, on the
// wire and in schedules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hccl {

// The number 0 means no collective.
enum class Collective : std::uint8_t {
  barrier = 1,
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  reduce,
  all_to_all,
  point_to_point  // rank 0 sends its message to rank 1
};

// A set of ranks, such as those that have an input in a call.
enum class RankSet : std::uint8_t { nobody, everybody, root, rank_0, rank_1 };

[[nodiscard]] constexpr bool contains(RankSet set, int rank, int root) {
  return set == RankSet::everybody || (set == RankSet::root && rank == root) ||
         (set == RankSet::rank_0 && rank == 0) || (set == RankSet::rank_1 && rank == 1);
}
[[nodiscard]] constexpr int size_of(RankSet set, int ranks) {
  return set == RankSet::nobody ? 0 : set == RankSet::everybody ? ranks : 1;
}

// The properties of a collective. A buffer holds either one block for each rank or a single
// message. In an in-place call, the input and the output are the same memory; if only one of the
// buffers has blocks, the other buffer is this rank's block in it.
struct CollectiveTraits {
  const char* name;   // "all_reduce"
  RankSet senders;    // the ranks with an input
  RankSet receivers;  // the ranks with an output
  bool has_blocks_in_input;
  bool has_blocks_in_output;
  bool reduces;

  // Returns whether each pair of ranks exchanges blocks. If so, a call's count covers all blocks of
  // a buffer.
  [[nodiscard]] constexpr bool exchanges() const {
    return has_blocks_in_input && has_blocks_in_output;
  }
  [[nodiscard]] constexpr bool has_root() const {
    return senders == RankSet::root || receivers == RankSet::root;
  }
};

// One row for each collective, indexed by its number.
inline constexpr std::array<CollectiveTraits, 9> kCollectives{{
    {"unknown collective", RankSet::nobody, RankSet::nobody, false, false, false},
    {"barrier", RankSet::nobody, RankSet::nobody, false, false, false},
    {"all_reduce", RankSet::everybody, RankSet::everybody, false, false, true},
    {"broadcast", RankSet::root, RankSet::everybody, false, false, false},
    {"all_gather", RankSet::everybody, RankSet::everybody, false, true, false},
    {"reduce_scatter", RankSet::everybody, RankSet::everybody, true, false, true},
    {"reduce", RankSet::everybody, RankSet::root, false, false, true},
    {"all_to_all", RankSet::everybody, RankSet::everybody, true, true, false},
    {"point_to_point", RankSet::rank_0, RankSet::rank_1, false, false, false},
}};

// Returns the row of a collective, or the first row for an unknown number, which another process
// may have sent.
[[nodiscard]] constexpr const CollectiveTraits& traits(Collective collective) {
  const auto number = static_cast<std::size_t>(collective);
  return kCollectives[number < kCollectives.size() ? number : 0];
}
[[nodiscard]] constexpr const char* name_of(Collective collective) {
  return traits(collective).name;
}

}  // namespace hccl
