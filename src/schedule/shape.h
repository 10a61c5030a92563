// SPDX-License-Identifier: Apache-2.0
// A shape: everything that an algorithm may depend on, and therefore the key of the schedule cache.
#pragma once

#include "call/collective.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace hccl::schedule {

// Ranks are numbered 0 .. rank_count - 1, whatever their numbers in the program. `in_place` means
// that the rank's input and output share memory, in the layout that the API allows for the
// collective. The ranks of a call agree on everything but `rank` and `in_place`.
struct Shape {
  Collective collective = Collective::barrier;
  bool in_place = false;
  std::int32_t rank = 0;
  std::int32_t rank_count = 1;
  std::int32_t root = 0;
  std::uint32_t channel = 0;
  std::uint32_t channels = 1;
  std::uint32_t pipeline = 1;  // number of chunks into which a pipelined algorithm cuts a message

  // Return the number of blocks in the API's buffers: one for the whole message, or one for each
  // rank.
  [[nodiscard]] std::uint32_t blocks_in_input() const {
    return traits(collective).has_blocks_in_input ? ranks() : 1;
  }
  [[nodiscard]] std::uint32_t blocks_in_output() const {
    return traits(collective).has_blocks_in_output ? ranks() : 1;
  }
  // Return whether the rank has input or output: in a broadcast only the root has input, and in a
  // reduce only the root has output.
  [[nodiscard]] bool has_input() const { return contains(traits(collective).senders, rank, root); }
  [[nodiscard]] bool has_output() const {
    return contains(traits(collective).receivers, rank, root);
  }
  // Returns whether the rank uses both its input and its output, and they share memory.
  [[nodiscard]] bool aliased() const { return in_place && has_input() && has_output(); }

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(rank_count); }

  friend bool operator==(const Shape&, const Shape&) = default;
};

}  // namespace hccl::schedule

template <>
struct std::hash<hccl::schedule::Shape> {
  std::size_t operator()(const hccl::schedule::Shape& shape) const noexcept;
};
